package main

import (
	"strings"

	"rtrace-bpf/internal/analysis/allocmap"
	"rtrace-bpf/internal/analysis/blocks"
	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// heapState collects what a trace contains about its heap.
type heapState struct {
	memory map[uint32]bool // resources
	heap   allocmap.Heap
	known  bool // the state of the heap
	text   bool // from comments of a text

	low, high uint64 // of the allocations of memory
}

func (s *heapState) see(r *trace.Record) {
	c := &r.Call
	switch {
	case r.Kind == trace.KindResource:
		s.memory[r.Resource.ID] = r.Resource.Type == blocks.Memory
	case r.Kind == trace.KindHeapInfo:
		h := &r.HeapInfo
		s.heap.Base, s.heap.Top, s.heap.KeepCost, s.known = h.Bottom, h.Top, h.KeepCost, true
	case r.Kind == trace.KindComment:
		if label, n, ok := heapLine(r.Comment); ok {
			s.line(label, n)
		}
	case r.Kind == trace.KindCall && (c.Op == trace.OpAlloc || c.Op == trace.OpMove) && s.memory[c.Resource]:
		s.low, s.high = min(s.low, c.ID), max(s.high, c.ID)
	}
}

// line parses a line of the heap block of a text.
func (s *heapState) line(label string, n uint64) {
	switch {
	case label == wire.HeapAddresses[0]:
		s.heap.Base = n
	case label == wire.HeapAddresses[1]:
		s.heap.Top = n
	case label == wire.HeapAddresses[2]:
		s.heap.Low = n
	case label == wire.HeapAddresses[3]:
		s.heap.High = n
	case strings.Contains(label, "malloc_trim"): // in the words of any version
		s.heap.KeepCost = n
	default:
		return
	}
	s.known, s.text = true, true
}

// result returns the known values. Without the bounds of the heap, the lowest and the
// highest allocation may be anywhere, and also if they are outside the bounds.
func (s *heapState) result() allocmap.Heap {
	h := s.heap
	if !s.known || s.high == 0 {
		return allocmap.Heap{}
	}
	if half := s.low &^ 0xffffffff; h.Top < 1<<32 {
		// 64-bit writers lose the upper half of the bounds.
		h.Base, h.Top = h.Base|half, h.Top|half
	}
	if !s.text {
		h.Low, h.High = s.low, s.high
	}
	inside := func(address uint64) uint64 {
		if address < h.Base || h.Top != 0 && address >= h.Top {
			return 0
		}
		return address
	}
	h.Low, h.High = inside(h.Low), inside(h.High)
	return h
}

// watcher passes records on and shows them to the heapState.
type watcher struct {
	src trace.Reader
	see func(*trace.Record)
}

func (w *watcher) ReadRecord(r *trace.Record) error {
	err := w.src.ReadRecord(r)
	if err == nil {
		w.see(r)
	}
	return err
}
