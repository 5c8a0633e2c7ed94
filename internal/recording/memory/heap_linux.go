package memory

import (
	"time"

	"rtrace-bpf/internal/linux/mallinfo"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/record"
)

// Limits of the time that reading the heap takes: at the end of the trace, and during it,
// when the tracer's buffers fill up meanwhile.
const (
	heapTime     = time.Second
	heapTickTime = 20 * time.Millisecond
	heapRest     = 100 // between two readings, in multiples of the time that the first took
)

// Heap records the state of malloc's heap at the end of the trace.
type Heap struct {
	pid     int
	line    *status.Line
	calls   bool              // the trace contains the calls of allocators
	process *mallinfo.Process // nil if the process has ended, or executes another program
	again   time.Time         // when to read next
	last    mallinfo.State
	time    int64 // of last, CLOCK_MONOTONIC in nanoseconds; 0 for none
	read    bool  // the heap was read at least once
	written bool  // to the trace
	// candidates are blocks that may have mappings of their own. They are counted if the
	// C library's own count is not known.
	candidates map[uint64]struct{}
}

// OpenHeap finds the heap of a process. calls is set if the trace contains the calls of its
// allocators.
func OpenHeap(pid int, calls bool, line *status.Line) *Heap {
	h := &Heap{pid: pid, calls: calls, line: line, candidates: map[uint64]struct{}{}}
	h.open()
	return h
}

// open finds the heap's variables. A process that has ended has none.
func (h *Heap) open() { h.process, _ = mallinfo.Open(h.pid) }

// Close releases the process.
func (h *Heap) Close() {
	if h.process != nil {
		_ = h.process.Close() // it was only read
		h.process = nil
	}
}

// Before passes the state of the heap to put, before the record that ends the trace.
// side is the trace's side file, or nil.
func (h *Heap) Before(rec *trace.Record, side *sidefile.Writer, put func(*trace.Record) error) error {
	if h.written {
		return nil
	}
	if !last(rec) {
		h.Observe(rec)
		return nil
	}
	h.written = true
	h.look(heapTime)
	switch {
	case h.time != 0 && h.last.Arena != 0:
		return h.put(side, put)
	case !h.read:
		h.line.Print("process %d: no state of the heap: the process ended before it was read, which happens about once a second", h.pid)
	default:
		h.line.Print("process %d: no state of the heap: it has none that could be read", h.pid)
	}
	return nil
}

// put writes the last state.
func (h *Heap) put(side *sidefile.Writer, put func(*trace.Record) error) error {
	about := sidefile.HeapInfo{Time: h.time, Unknown: h.last.Unknown, Why: h.last.Why}
	if len(h.last.Unknown) > 0 {
		text := about.Comment()
		h.line.Note("process %d: %s", h.pid, text)
		if err := put(&trace.Record{Kind: trace.KindComment, Time: h.time, PID: int32(h.pid), Comment: text}); err != nil {
			return err
		}
	}
	if side != nil {
		if err := side.HeapInfo(&about); err != nil {
			return err
		}
	}
	return put(&trace.Record{Kind: trace.KindHeapInfo, Time: h.time, PID: int32(h.pid), HeapInfo: h.last.HeapInfo})
}

// Observe takes a record of the trace.
func (h *Heap) Observe(rec *trace.Record) {
	switch rec.Kind {
	case trace.KindExec:
		h.Close()
		h.open()
		h.time, h.read = 0, false
		clear(h.candidates)
	case trace.KindCall:
		if h.calls && h.process != nil && !h.process.Known() && rec.Call.Resource == record.MemoryResource {
			h.follow(&rec.Call)
		}
	}
}

// follow keeps live blocks that may have mappings of their own: large ones, and those
// that begin where such a block begins in its page.
func (h *Heap) follow(c *trace.Call) {
	const large, page = 64 << 10, 4 << 10
	if c.Op == trace.OpFree || c.Op == trace.OpMove {
		old := c.ID
		if c.Op == trace.OpMove {
			old = c.OldID
		}
		delete(h.candidates, old)
	}
	if c.Op == trace.OpFree {
		return
	}
	if at := c.ID % page; c.Size >= large || at == 8 || at == 16 { // two words
		h.candidates[c.ID] = struct{}{}
	}
}

// Tick reads the heap if it is time. It is called about once a second.
func (h *Heap) Tick() {
	if h.written || time.Now().Before(h.again) {
		return
	}
	start := time.Now()
	h.look(heapTickTime)
	h.again = time.Now().Add(heapRest * time.Since(start))
}

// look reads the heap. If that fails, the last state remains.
func (h *Heap) look(limit time.Duration) {
	if h.process == nil {
		return
	}
	state, err := h.process.Read(time.Now().Add(limit))
	h.read = h.read || err == nil
	if err != nil || state.Arena == 0 {
		return
	}
	if !h.process.Known() {
		for block := range h.candidates {
			if size, ok := h.process.Mapped(block); ok {
				state.HBlks++
				state.HBlkHd += size
			}
		}
	}
	h.last, h.time = state, now()
}
