package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/mallinfo"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// Limits of how long the heap is read: at the end of the trace, and while it goes on,
// where the tracer's rings fill up meanwhile.
const (
	heapTime     = time.Second
	heapTickTime = 20 * time.Millisecond
	heapRest     = 100 // a reading is not repeated before so many times as long as it took
)

// heapInfo looks at the heap of a process for the record at the end of the trace. While
// the trace goes on it looks about once a second, since the memory of a process that has
// ended is gone.
type heapInfo struct {
	pid     int
	memory  bool              // the trace has the calls of allocators
	process *mallinfo.Process // nil if the process is gone, or is another program now
	again   time.Time         // when to look next
	last    mallinfo.State
	time    int64 // of last, CLOCK_MONOTONIC; 0 for none
	looked  bool  // while it was there
	told    bool
	// candidates are blocks that may have mappings of their own, if nothing else tells
	// how many have.
	candidates map[uint64]struct{}
}

// checkHeapInfo says what --heap-info does not go with.
func (c *config) checkHeapInfo() error {
	switch {
	case !c.heapInfo:
		return nil
	case !slices.Contains([]string{"sprtrace", "text", "jsonl", "nettrace"}, c.format):
		return fmt.Errorf("--heap-info: %s has no place for the state of the heap; sprtrace, text, nettrace and jsonl have", c.format)
	case c.dotnet.on && !c.dotnet.native:
		return errors.New("--heap-info does not go with --dotnet alone: the runtime has a heap of its own")
	}
	return nil
}

// openHeapInfo begins to look at the heap, if that is asked for.
func (x *session) openHeapInfo() {
	if !x.config.heapInfo {
		return
	}
	x.heap = &heapInfo{pid: x.pid, memory: x.config.modules.memory(), candidates: map[uint64]struct{}{}}
	x.heap.open()
}

// open finds the heap's variables. A process that has ended has none.
func (h *heapInfo) open() { h.process, _ = mallinfo.Open(h.pid) }

// close lets go of the process.
func (h *heapInfo) close() {
	if h != nil && h.process != nil {
		_ = h.process.Close() // it was only read
		h.process = nil
	}
}

// tellHeap writes the state of the heap before the record that ends the trace.
func (x *session) tellHeap(rec *trace.Record) error {
	h := x.heap
	if h == nil || h.told {
		return nil
	}
	if rec.Kind != trace.KindEnd && (rec.Kind != trace.KindExit || !rec.Exit.Process) {
		h.observe(rec)
		return nil
	}
	h.told = true
	h.read(heapTime)
	switch {
	case h.time != 0 && h.last.Arena != 0:
	case !h.looked:
		x.status.print("process %d: no state of the heap: the process ended before it was read, which is about once a second", x.pid)
		return nil
	default:
		x.status.print("process %d: no state of the heap: it has none that could be read", x.pid)
		return nil
	}
	about := sidefile.HeapInfo{Time: h.time, Unknown: h.last.Unknown, Why: h.last.Why}
	state := trace.Record{Kind: trace.KindHeapInfo, Time: h.time, PID: int32(x.pid), HeapInfo: h.last.HeapInfo}
	if len(h.last.Unknown) > 0 {
		text := about.Comment()
		if !x.config.quiet {
			x.status.print("process %d: %s", x.pid, text)
		}
		if err := x.put(&trace.Record{Kind: trace.KindComment, Time: h.time, PID: int32(x.pid), Comment: text}); err != nil {
			return err
		}
	}
	if x.side != nil {
		if err := x.side.HeapInfo(&about); err != nil {
			return err
		}
	}
	return x.put(&state)
}

// observe takes in a record.
func (h *heapInfo) observe(rec *trace.Record) {
	switch rec.Kind {
	case trace.KindExec:
		h.close()
		h.open()
		h.time, h.looked = 0, false
		clear(h.candidates)
	case trace.KindCall:
		if h.memory && h.process != nil && !h.process.Known() && rec.Call.Resource == tracer.MemoryResource {
			h.follow(&rec.Call)
		}
	}
}

// follow keeps those live blocks that may have mappings of their own: large ones, and
// those that begin where such a block begins in its page.
func (h *heapInfo) follow(c *trace.Call) {
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

// tick is called about once a second.
func (h *heapInfo) tick() {
	if h.told || time.Now().Before(h.again) {
		return
	}
	start := time.Now()
	h.read(heapTickTime)
	h.again = time.Now().Add(heapRest * time.Since(start))
}

// read looks at the heap. What cannot be read leaves what was read last.
func (h *heapInfo) read(limit time.Duration) {
	if h.process == nil {
		return
	}
	state, err := h.process.Read(time.Now().Add(limit))
	h.looked = h.looked || err == nil
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
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail with these arguments
	h.last, h.time = state, now.Nano()
}
