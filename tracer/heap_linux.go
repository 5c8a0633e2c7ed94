package tracer

import (
	"encoding/binary"
	"fmt"
	"os"

	"rtrace-bpf/internal/linux/proc"
)

// heap is what the allocator had from the system when the trace began.
type heap struct {
	regions []extent // by address
	seen    uint64   // when that was read
}

// told says whether the trace has begun with what e tells: the heap grew
// between the first event and the reading.
func (h *heap) told(e *event) bool {
	if e.time > h.seen {
		return false
	}
	for _, r := range h.regions {
		if r.start <= e.addr && e.addr+e.size <= r.end {
			return true
		}
	}
	return false
}

// readHeap finds what the allocator has. It is empty if the process has ended.
func readHeap(t *target) heap {
	maps, err := proc.Maps(t.pid)
	if err != nil {
		return heap{}
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err != nil {
		return heap{}
	}
	defer memory.Close()
	f := heapFinder{maps: maps, machine: t.machine, page: uint64(os.Getpagesize()), word: func(addr uint64) uint64 {
		var b [8]byte // little-endian, or the whole of it
		if _, err := memory.ReadAt(b[:t.machine.word], int64(addr)); err != nil {
			return 0
		}
		return binary.LittleEndian.Uint64(b[:])
	}}
	return heap{regions: f.find(), seen: clock()}
}

// heapFinder recognises heaps among the mappings of a process: that of brk by
// its name, those of glibc's other arenas (malloc/arena.c) by their shape and by
// the words that they begin with. Blocks that have mappings of their own are not
// looked for: nothing lists them, and the kernel makes one mapping of neighbours.
type heapFinder struct {
	maps    []proc.Map
	machine *machine
	page    uint64
	word    func(addr uint64) uint64 // of the process's memory; 0 if it cannot be read
}

// find returns the regions by address.
func (f *heapFinder) find() []extent {
	var found []extent
	for i := 0; i < len(f.maps); {
		m := f.maps[i]
		if m.Perms != proc.Read|proc.Write || m.Inode != 0 || m.Path != "[heap]" && m.Path != "" {
			i++
			continue
		}
		// Neighbours with other flags are mappings of their own.
		end := f.run(&i, m)
		if m.Path == "[heap]" {
			found = append(found, extent{start: m.Start, end: end})
			continue
		}
		reserved, j := end, i
		if i < len(f.maps) && f.maps[i].Start == end && f.maps[i].Perms == 0 {
			reserved = f.run(&j, f.maps[i])
		}
		step := f.machine.arenaHeap
		for at := (m.Start + step - 1) &^ (step - 1); at < end; at += step {
			if size, ok := f.arena(at, end, reserved); ok {
				found = append(found, extent{start: at, end: at + size})
			}
		}
	}
	return found
}

// run returns the end of the mappings like m that follow each other from the
// i-th on, which is m, and moves i behind them.
func (f *heapFinder) run(i *int, m proc.Map) uint64 {
	end := m.Start
	for ; *i < len(f.maps); *i++ {
		x := &f.maps[*i]
		if x.Start != end || x.Perms != m.Perms || x.Path != m.Path || x.Inode != 0 {
			break
		}
		end = x.End
	}
	return end
}

// arena returns the accessible size of the heap of an arena at addr, where
// memory is accessible to end and mapped to reserved. Such a heap begins with the
// address of its arena, that of the heap before it, its size, and how much of it
// is accessible, which may have grown since the mappings were read.
func (f *heapFinder) arena(addr, end, reserved uint64) (uint64, bool) {
	arenaHeap, word := f.machine.arenaHeap, f.machine.word
	if reserved < addr+arenaHeap {
		return 0, false
	}
	arena, size, accessible := f.word(addr), f.word(addr+2*word), f.word(addr+3*word)
	ok := arena != 0 && arena%(2*word) == 0 && size > 0 && size <= accessible && accessible%f.page == 0 && accessible <= arenaHeap
	return min(end-addr, arenaHeap), ok
}
