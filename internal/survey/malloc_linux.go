package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/heap"
	"rtrace-bpf/internal/linux/glibcheap"
	"rtrace-bpf/internal/linux/mallinfo"
)

// malloc adds the rows of the GNU C library's malloc, if the process has it.
func (r *reading) malloc(ctx context.Context, data map[inode][]extent) {
	if !r.wide() {
		return
	}
	files := r.id.glibc
	if len(files) == 0 && !r.id.musl && !r.id.is("go") {
		files = []inode{r.id.exe} // a static program
	}
	var writable []glibcheap.Extent
	for _, f := range files {
		for _, e := range data[f] {
			writable = append(writable, glibcheap.Extent{Start: e.start, End: e.end})
		}
	}
	brk := r.brk()
	f := glibcheap.Find(r.space, r.page, writable, brk)
	if len(f.Heap.Arenas) == 0 && len(r.id.glibc) == 0 || len(r.id.allocators) > 0 && f.Unused() {
		return // another C library, or another allocator
	}
	r.d.Heap = f.Heap
	if len(f.Heap.Arenas) == 0 && r.anySwapped(writable) {
		f.Heap.Why = "the main arena was not found: data of the C library is swapped out, and reading it would bring it back"
	}
	if len(f.Heap.Arenas) == 0 && r.anyHugetlb() {
		f.Heap.Why = "the main arena was not found: malloc is unused, its version is not supported, or its memory is in pages of hugetlbfs"
	}
	f.Walk(ctx)
	for _, e := range f.Extents {
		r.take(e.Start, e.End)
	}
	for _, e := range f.Mapped(ctx, r.unclaimed()) {
		r.take(e.Start, e.End)
	}
	r.mallocRows(f.Heap)
}

// anySwapped reports whether a part of some memory is swapped out.
func (r *reading) anySwapped(memory []glibcheap.Extent) bool {
	for _, e := range memory {
		if a := r.at(e.Start); a != nil && a.Swap > 0 {
			return true
		}
	}
	return false
}

// anyHugetlb reports whether the process has pages of hugetlbfs.
func (r *reading) anyHugetlb() bool {
	return slices.ContainsFunc(r.areas, func(a area) bool { return a.Hugetlb > 0 })
}

// brk returns the memory below the program break.
func (r *reading) brk() (e glibcheap.Extent) {
	for i := range r.areas {
		if a := &r.areas[i]; a.Path == "[heap]" {
			if e.Start == 0 {
				e.Start = a.Start
			}
			e.End = a.End
		}
	}
	return e
}

// unclaimed returns the anonymous memory in which malloc may have mapped blocks, small mappings
// first: large ones are those of other allocators and runtimes.
func (r *reading) unclaimed() (all []glibcheap.Extent) {
	for i := range r.areas {
		a := &r.areas[i]
		if !a.anonymous() || !a.writable() || a.Resident+a.Swap == 0 {
			continue
		}
		for _, e := range a.free() {
			all = append(all, glibcheap.Extent{Start: e.start, End: e.end})
		}
	}
	slices.SortStableFunc(all, func(a, b glibcheap.Extent) int { return cmp.Compare(a.End-a.Start, b.End-b.Start) })
	return all
}

// mallocRows adds a row for each state of a block.
func (r *reading) mallocRows(h *heap.Heap) {
	sum := glibcheap.Amounts(h.Arenas)
	var usage amount // of all mappings of arenas and mapped blocks
	for i := range r.areas {
		if a := &r.areas[i]; len(a.taken) > 0 && a.anonymous() || a.Path == "[heap]" {
			usage.resident += a.Resident
			usage.shared += a.Shared
			usage.huge += a.Huge
		}
	}
	why := ""
	for _, a := range h.Arenas {
		if a.Why != "" {
			why = a.Why
			break
		}
	}
	sum.Live.Blocks += h.Mapped.Blocks
	sum.Live.Bytes += h.Mapped.Bytes
	sum.Live.Resident += h.Mapped.Resident
	for _, row := range []struct {
		to label
		heap.Amount
	}{
		{label{explain.Live, "malloc: live blocks", "blocks", ""}, sum.Live},
		{label{explain.Free, "malloc: free blocks between live ones", "blocks", ""}, sum.Free},
		{label{explain.Cached, "malloc: freed blocks in thread caches", "blocks", ""}, sum.Cached},
		{label{explain.Fast, "malloc: freed blocks in fast bins", "blocks", ""}, sum.Fast},
		{label{explain.Top, "malloc: free ends of arenas", "blocks", ""}, sum.Top},
		{label{explain.Own, "malloc: its own structures", "blocks", ""}, sum.Own},
		{label{explain.Unread, "malloc: blocks that could not be read", "blocks", why}, sum.Unread},
	} {
		if row.Bytes == 0 {
			continue
		}
		r.rows.add(row.to, "", amount{
			resident: row.Resident, size: row.Bytes, count: row.Blocks,
			shared: scale(row.Resident, usage.shared, usage.resident), huge: scale(row.Resident, usage.huge, usage.resident),
		})
	}
}

// scale returns n * part / whole.
func scale(n, part, whole uint64) uint64 {
	if whole == 0 {
		return 0
	}
	return uint64(float64(n) * float64(part) / float64(whole))
}

// compare compares the walk with the library's own lists, if debugging symbols name them. It
// does not for a process that is partly swapped out: reading the lists would bring memory back.
func compare(pid int, h *heap.Heap, swap uint64, deadline time.Time) {
	if h == nil {
		return
	}
	if swap > 0 {
		h.Check = &heap.Check{Why: "the C library's own lists of free blocks are not read, because that would bring memory back from swap"}
		return
	}
	p, err := mallinfo.Open(pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Close() }() // it was only read
	if !p.Known() {
		return
	}
	state, err := p.Read(deadline)
	switch {
	case err != nil:
		h.Check = &heap.Check{Why: err.Error()}
	case len(state.Unknown) > 0:
		h.Check = &heap.Check{Why: fmt.Sprintf("the C library's lists of free blocks could not be read: %s", state.Why)}
	default:
		sum := glibcheap.Amounts(h.Arenas)
		h.Check = &heap.Check{
			System: state.Arena, Free: state.FordBlks, WalkedSystem: sum.System,
			WalkedFree: sum.Free.Bytes + sum.Fast.Bytes + sum.Top.Bytes,
		}
	}
}
