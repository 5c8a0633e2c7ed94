package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/linux/resident"
)

// Options limit a survey.
type Options struct {
	// Walk is how long the blocks of malloc are read at most; 0 means 10 s.
	Walk time.Duration
	// Check compares with the C library's own lists of free blocks, if debugging symbols name
	// them. Reading the symbols takes longer than everything else.
	Check bool
}

// defaultWalk is how long blocks are read if nothing else is asked for.
const defaultWalk = 10 * time.Second

// tries is how often a process is read if its rows do not add up to its resident memory.
const tries = 3

// Read explains the memory of a process as it is now. If it changes so fast that the rows do not
// add up to the resident memory, Read tries again a few times, and at last notes it. The error
// wraps proc.ErrNoProcess or proc.ErrNoProgram if it has none, and fs.ErrPermission if it may
// not be read. When ctx ends, the blocks of malloc are read no further.
func Read(ctx context.Context, pid int, o Options) (*explain.Document, error) {
	if o.Walk == 0 {
		o.Walk = defaultWalk
	}
	for n := 1; ; n++ {
		d, err := read(ctx, pid, o)
		if err != nil {
			return nil, err
		}
		if d.AddsUp() {
			return d, nil
		}
		if n == tries || d.Took > o.Walk.Seconds()/tries || ctx.Err() != nil {
			d.Notes = append(d.Notes, "the process changed while it was read: the rows do not add up to what the kernel counts")
			return d, nil
		}
	}
}

// read reads a process once.
func read(ctx context.Context, pid int, o Options) (*explain.Document, error) {
	started := time.Now()
	d := &explain.Document{Time: started, Notes: []string{}}
	if err := describe(pid, &d.Process); err != nil {
		return nil, err
	}
	before, err := resident.Total(pid)
	if err != nil {
		return nil, err
	}
	d.Before = before.Resident
	s, err := open(pid)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r := reading{space: s, d: d, rows: newLedger(), pid: pid}
	data := r.start()
	walking, cancel := context.WithTimeout(ctx, o.Walk)
	r.malloc(walking, data)
	cancel()
	for i := range r.areas {
		r.rest(&r.areas[i])
	}
	after, err := resident.Total(pid)
	if err != nil {
		return nil, err
	}
	d.Resident, d.Swap, d.Hugetlb = after.Resident, after.Swap, after.Hugetlb
	d.Proportional = after.Proportional
	d.Rows = r.rows.finish()
	for _, row := range d.Rows {
		d.Sum += row.Resident
	}
	d.PageTables = pageTables(pid)
	if o.Check {
		compare(pid, d.Heap, d.Swap, started.Add(o.Walk))
	}
	r.name()
	d.Took = time.Since(started).Seconds()
	d.Judge()
	return d, nil
}

// describe fills in what is known of a process itself.
func describe(pid int, p *explain.Process) error {
	status, err := proc.ReadStatus(pid)
	if err != nil {
		return err
	}
	head, err := proc.ProgramHead(pid)
	if err != nil {
		return err
	}
	exe, _, err := proc.Exe(pid)
	if err != nil {
		return err
	}
	*p = explain.Process{
		PID: pid, NSPID: pid, Name: status.Name, Exe: exe, Bits: head.Bits, Threads: status.Threads,
		Runtimes: []string{}, Allocators: []string{},
	}
	if n := len(status.NSPID); n > 0 {
		p.NSPID = status.NSPID[n-1]
	}
	return nil
}

// pageTables returns the size of the page tables of a process, 0 if it is unknown.
func pageTables(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmPTE:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10
		}
	}
	return 0
}

// open reads the mappings of a process and opens its memory.
func open(pid int) (*space, error) {
	mappings, err := resident.Mappings(pid)
	if err != nil {
		return nil, err
	}
	s := &space{page: uint64(os.Getpagesize()), areas: make([]area, len(mappings))}
	for i, m := range mappings {
		s.areas[i].Mapping = m
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, fmt.Errorf("open the memory of process %d: %w", pid, err)
	}
	s.memory = memory
	if s.pagemap, err = resident.OpenPagemap(pid); err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	return s, nil
}

func (s *space) close() {
	if c, ok := s.memory.(io.Closer); ok {
		_ = c.Close() // it was only read
	}
	_ = s.pagemap.Close()
}

// reading is one reading of a process.
type reading struct {
	*space
	d    *explain.Document
	rows *ledger
	id   identity
	pid  int
}

// start recognises the process, adds the rows that are parts of mappings, except those of
// malloc, and returns the writable data of each file.
func (r *reading) start() map[inode][]extent {
	r.id.identify(r.areas, r.d.Process.Exe)
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", r.pid)); err == nil {
		r.id.tmpfs = parseMounts(string(text))
	}
	if len(r.id.runtimes) == 0 && (len(r.id.glibc) == 0 || r.loose()) { // reading symbols takes time
		r.id.identifyProgram(r.pid, r.areas)
	}
	data := r.bss(r.pid, r.rows, &r.id)
	if r.wide() {
		r.stacks(r.pid, r.rows, &r.id)
	} else {
		r.d.Notes = append(r.d.Notes, "the process has 32 bits: only its mappings are shown, not the blocks of malloc and the stacks of threads")
	}
	return data
}

// wide reports whether the process has 64 bits.
func (r *reading) wide() bool { return r.d.Process.Bits == 64 }

// name lists what was recognised.
func (r *reading) name() {
	p := &r.d.Process
	p.Runtimes = append(p.Runtimes, r.id.runtimes...)
	p.Allocators = append(p.Allocators, r.id.allocators...)
	if r.d.Heap != nil {
		p.Allocators = append(p.Allocators, "glibc")
	}
}

// loose reports whether much of the memory is anonymous and outside of the program break, so
// that it matters whether the program contains an allocator.
func (r *reading) loose() bool {
	const much = 20 // a part of that many
	var anonymous, all uint64
	for i := range r.areas {
		a := &r.areas[i]
		all += a.Resident
		if a.anonymous() {
			anonymous += a.Resident
		}
	}
	return anonymous > all/much
}

// rest adds what is left of an area to the row of its mapping.
func (r *reading) rest(a *area) {
	to, part := r.id.labelOf(a)
	left := amount{resident: a.Resident, shared: a.Shared, swap: a.Swap, huge: a.Huge, count: 1}
	parts := a.free()
	for _, e := range parts {
		left.size += e.end - e.start
	}
	if len(a.taken) > 0 {
		var taken, swap uint64
		for _, t := range a.taken {
			taken += r.Resident(t.start, t.end)
		}
		for _, e := range parts {
			if p := r.pagesOf(a); p != nil {
				swap += p.SwappedOut(e.start, e.end)
			}
		}
		left.swap = min(swap, a.Swap)
		if n := a.Swap - left.swap; n > 0 {
			r.rows.add(ofSwapped, "", amount{swap: n, count: 1})
		}
		left.resident -= min(left.resident, taken)
		left.shared = min(left.shared, left.resident)
		left.huge = min(left.huge, left.resident)
		if left.size == 0 {
			to, part = ofChanges, ""
		}
		left.count = min(1, left.size)
	}
	if a.Perms == 0 && a.anonymous() { // reserved addresses, no memory
		left.size, left.count = 0, 0
	}
	if left.resident+left.swap+left.size > 0 {
		r.rows.add(to, part, left)
	}
}
