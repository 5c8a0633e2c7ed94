package survey

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"rtrace-bpf/internal/linux/proc"
)

// Limits of looking for stacks.
const (
	maxStackPages = 1 << 12 // of one mapping
	maxSearched   = 1 << 18 // pages of all mappings
	maxThreads    = 1 << 16
)

// stacks finds the stacks of threads, takes their memory and adds their row.
func (s *space) stacks(pid int, to *ledger, id *identity) {
	for i := 0; i+1 < len(s.areas); i++ {
		guard, a := &s.areas[i], &s.areas[i+1]
		if guard.Perms&(proc.Read|proc.Write|proc.Exec) != 0 || !guard.anonymous() ||
			a.Start != guard.End || !a.anonymous() || !a.writable() || a.Resident == 0 {
			continue
		}
		if end, ok := s.stackAbove(guard, a); ok {
			s.addStack(to, a.Start, end)
		}
	}
	for _, sp := range pointers(pid) {
		a := s.at(sp)
		if a == nil || !a.anonymous() || !a.writable() || len(a.taken) > 0 {
			continue
		}
		if l, _ := id.labelOf(a); l != ofAnonymous {
			continue // stacks within the heap of a runtime
		}
		s.addStack(to, a.Start, a.End)
	}
}

func (s *space) addStack(to *ledger, start, end uint64) {
	s.take(start, end)
	n := s.Resident(start, end)
	to.add(ofStacks, fmt.Sprintf("stack at %#x", start), amount{resident: n, size: end - start, count: 1})
}

// stackAbove returns the end of the stack above a guard. The GNU C library keeps a structure of
// the thread in the last page of a stack, which contains the address of the stack with its
// guard, the size of both, and the size of the guard (struct pthread). The kernel may have
// merged the guard with memory below it, and the stack with memory above it.
func (s *space) stackAbove(guard, a *area) (end uint64, ok bool) {
	pages := s.pagesOf(a)
	if pages == nil {
		return 0, false
	}
	b := make([]byte, s.page)
	check := func(page uint64) (uint64, bool) {
		if !pages.Readable(page) {
			return 0, false
		}
		if n, _ := s.memory.ReadAt(b, int64(page)); n < len(b) {
			return 0, false
		}
		return s.threadIn(b, page, guard, a)
	}
	if end, ok = check(a.End - s.page); ok {
		return end, true
	}
	at := pages.NextReadable(a.Start)
	for n := 0; at < a.End && n < maxStackPages && s.searched < maxSearched; n++ {
		s.searched++
		if end, ok = check(at); ok {
			return end, true
		}
		at = pages.NextReadable(at + s.page)
	}
	return 0, false
}

// threadIn looks for the three words in the page b at an address.
func (s *space) threadIn(b []byte, page uint64, guard, a *area) (end uint64, ok bool) {
	const word = 8
	for ; len(b) >= 3*word; b = b[word:] {
		start := binary.LittleEndian.Uint64(b)
		if start < guard.Start || start >= guard.End || start%s.page != 0 {
			continue
		}
		size, guardSize := binary.LittleEndian.Uint64(b[word:]), binary.LittleEndian.Uint64(b[2*word:])
		end = start + size
		if size%s.page == 0 && end > page && end-page <= 2*s.page && end <= a.End && guardSize > 0 && guardSize <= guard.End-start {
			return end, true
		}
	}
	return 0, false
}

// pointers returns the stack pointers of the threads that wait in the kernel.
func pointers(pid int) (all []uint64) {
	tids, _ := proc.ThreadIDs(pid) // without them, stacks have their guards
	for _, tid := range tids[:min(len(tids), maxThreads)] {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
		if err != nil {
			continue
		}
		// NUMBER ARGUMENTS SP PC; "running" for one that runs.
		fields := strings.Fields(string(text))
		if len(fields) < 3 {
			continue
		}
		if sp, err := strconv.ParseUint(strings.TrimPrefix(fields[len(fields)-2], "0x"), 16, 64); err == nil {
			all = append(all, sp)
		}
	}
	return all
}
