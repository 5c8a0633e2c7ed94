package record

import (
	"encoding/binary"
	"fmt"
	"os"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// Heap is the memory that the allocator had from the system when the trace began.
type Heap struct {
	Regions []process.Extent // by address
	Seen    uint64           // when they were read
}

// Includes reports whether the Regions contain the growth e: the heap grew after the
// first event and before they were read.
func (h *Heap) Includes(e *order.Event) bool {
	if e.Time > h.Seen {
		return false
	}
	for _, r := range h.Regions {
		if r.Start <= e.Addr && e.Addr+e.Size <= r.End {
			return true
		}
	}
	return false
}

// grown makes a record of heap growth, unless the Regions, which the trace began with,
// contain it.
func (h *Heap) grown(e *order.Event, r *trace.Record) bool {
	if h.Includes(e) {
		return false
	}
	*r = trace.Record{
		Kind: trace.KindHeapGrow, Time: int64(e.Time), PID: int32(e.PID), TID: int32(e.TID), CPU: int32(e.CPU) + 1,
		HeapGrow: trace.HeapGrow{Address: e.Addr, Size: e.Size},
	}
	return true
}

// readHeap finds the allocator's memory. The result is empty if the process has ended.
func readHeap(t *process.Target) Heap {
	maps, err := proc.Maps(t.PID)
	if err != nil {
		return Heap{}
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.PID))
	if err != nil {
		return Heap{}
	}
	defer memory.Close()
	f := HeapFinder{Maps: maps, Machine: t.Machine, Page: uint64(os.Getpagesize()), Word: func(addr uint64) uint64 {
		var b [8]byte // the upper half stays 0 on 32-bit machines
		if _, err := memory.ReadAt(b[:t.Machine.Word], int64(addr)); err != nil {
			return 0
		}
		return binary.LittleEndian.Uint64(b[:])
	}}
	return Heap{Regions: f.Find(), Seen: order.Clock()}
}

// HeapFinder finds heaps among the mappings of a process: the heap of brk by its name,
// and those of glibc's other arenas (malloc/arena.c) by their shape and their first
// words. It does not find blocks with mappings of their own: nothing lists them, and the
// kernel merges neighbours into one mapping.
type HeapFinder struct {
	Maps    []proc.Map
	Machine *process.Machine
	Page    uint64
	Word    func(addr uint64) uint64 // reads the process's memory; returns 0 if it cannot
}

// Find returns the regions, sorted by address.
func (f *HeapFinder) Find() []process.Extent {
	var found []process.Extent
	for i := 0; i < len(f.Maps); {
		m := f.Maps[i]
		if m.Perms != proc.Read|proc.Write || m.Inode != 0 || m.Path != "[heap]" && m.Path != "" {
			i++
			continue
		}
		// Neighbours with other flags are separate mappings.
		end := f.run(&i, m)
		if m.Path == "[heap]" {
			found = append(found, process.Extent{Start: m.Start, End: end})
			continue
		}
		reserved, j := end, i
		if i < len(f.Maps) && f.Maps[i].Start == end && f.Maps[i].Perms == 0 {
			reserved = f.run(&j, f.Maps[i])
		}
		step := f.Machine.ArenaHeap
		for at := (m.Start + step - 1) &^ (step - 1); at < end; at += step {
			if size, ok := f.arena(at, end, reserved); ok {
				found = append(found, process.Extent{Start: at, End: at + size})
			}
		}
	}
	return found
}

// run returns the end of the adjacent mappings like m, which is the i-th, and moves i
// after them.
func (f *HeapFinder) run(i *int, m proc.Map) uint64 {
	end := m.Start
	for ; *i < len(f.Maps); *i++ {
		x := &f.Maps[*i]
		if x.Start != end || x.Perms != m.Perms || x.Path != m.Path || x.Inode != 0 {
			break
		}
		end = x.End
	}
	return end
}

// arena returns the accessible size of an arena's heap at addr, where memory is
// accessible up to end and mapped up to reserved. Such a heap begins with the address of
// its arena, the address of the heap before it, its size, and its accessible size, which
// may have grown since the mappings were read.
func (f *HeapFinder) arena(addr, end, reserved uint64) (uint64, bool) {
	arenaHeap, word := f.Machine.ArenaHeap, f.Machine.Word
	if reserved < addr+arenaHeap {
		return 0, false
	}
	arena, size, accessible := f.Word(addr), f.Word(addr+2*word), f.Word(addr+3*word)
	ok := arena != 0 && arena%(2*word) == 0 && size > 0 && size <= accessible && accessible%f.Page == 0 && accessible <= arenaHeap
	return min(end-addr, arenaHeap), ok
}
