// Package rss compares how much the resident memory of a process grew while it was
// traced with the blocks that were allocated meanwhile and are still live. All views use
// it, so that they agree on when to say that the growth is elsewhere.
package rss

import (
	"fmt"
	"strings"

	"rtrace-bpf/trace"
)

// What counts as growth elsewhere: of the growth that the traced blocks do not account
// for, at least leastBytes, and more than half of the whole.
//
// leastBytes is above what a program grows by without any block, as by stacks, code and
// the rounding of the kernel's own count on machines with many processors. blockCost is
// what an allocator takes for a block besides the bytes that were asked for: glibc's
// smallest block has 32 bytes. Half leaves room for rounded sizes and holes.
const (
	leastBytes = 32 << 20
	blockCost  = 32
)

// memory is the type of the resource that blocks of memory are of.
const memory = "memory"

// Account takes the records of a trace.
type Account struct {
	pid         int32
	start, last uint64 // bytes
	read        int    // how often they were told since the process has its program
	traces      int
	lost        uint64 // events
	pauses      uint64
	mappings    bool // mmap is traced
	heap        bool // the state of the heap is there
	memory      bool // malloc is traced, each call
	ended       bool // the process
}

// Add takes a record.
func (a *Account) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		a.traces++
	case trace.KindProcess:
		a.pid = r.PID
	case trace.KindResource:
		switch r.Resource.Type {
		case memory:
			a.memory = !r.Resource.Sampled
		case "mmap":
			a.mappings = true
		}
	case trace.KindExec:
		a.read = 0
	case trace.KindLost:
		switch {
		case r.Lost.Gap():
			a.pauses += r.Lost.Count
		case r.Lost.HidesFrees(): // and so allocations
			a.lost += r.Lost.Count
		}
	case trace.KindHeapInfo:
		a.heap = true
	case trace.KindExit:
		a.ended = a.ended || r.Exit.Process
	case trace.KindRSS:
		if a.read == 0 {
			a.start = r.RSS.Bytes
		}
		a.last = r.RSS.Bytes
		a.read++
	}
}

// Live are the blocks of memory that were allocated since the start of the trace, at its
// end.
type Live struct {
	Blocks uint64 `json:"live_blocks"`
	Bytes  uint64 `json:"live_bytes"`
	// Of the unknown ones frees may have been missed in a gap of the recording. They
	// are not among the others.
	UnknownBlocks uint64 `json:"unknown_blocks,omitempty"`
	UnknownBytes  uint64 `json:"unknown_bytes,omitempty"`
}

// Growth is what became of the resident memory, in bytes.
type Growth struct {
	Start uint64 `json:"start"`
	End   uint64 `json:"end"`
	Live
	// Elsewhere says that the memory grew by much more than these.
	Elsewhere bool `json:"grew_elsewhere"`
	// Verdict says so in words; empty if it did not.
	Verdict string `json:"verdict,omitempty"`
}

// Growth compares with what is live at the end of the trace. It returns nil if the trace
// does not tell both the resident memory at its start and at its end, or not each call of
// malloc.
func (a *Account) Growth(live Live) *Growth {
	if a.read < 2 || a.traces > 1 || !a.memory {
		return nil
	}
	g := &Growth{Start: a.start, End: a.last, Live: live}
	// What may be live counts as if it was: nothing is said of a growth that it may explain.
	if g.Elsewhere = elsewhere(a.start, a.last, live.Blocks+live.UnknownBlocks, live.Bytes+live.UnknownBytes); g.Elsewhere {
		g.Verdict = fmt.Sprintf("RSS grew by %s, blocks allocated and still live by %s: %s.%s Next: %s",
			size(a.last-a.start), size(live.Bytes), "the growth is not in the traced blocks", a.doubt(), a.next())
	}
	return g
}

// elsewhere decides whether the growth is elsewhere than in the blocks.
func elsewhere(start, end, blocks, bytes uint64) bool {
	if end <= start || blocks > 1<<40 || bytes > 1<<60 {
		return false
	}
	grown, known := end-start, bytes+blockCost*blocks
	return grown > known && grown-known >= leastBytes && grown-known > grown/2
}

// doubt says what is missing from the trace, so that blocks may be.
func (a *Account) doubt() string {
	var why []string
	if a.lost > 0 {
		why = append(why, fmt.Sprintf("%d events were lost", a.lost))
	}
	if a.pauses > 0 {
		why = append(why, "the recording was paused")
	}
	if len(why) == 0 {
		return ""
	}
	return " Blocks may be missing from the trace: " + strings.Join(why, ", and ") + "."
}

// next returns a command that finds out more.
func (a *Account) next() string {
	var flags []string
	if !a.mappings {
		flags = append(flags, "-e memory:mmap:shmposix")
	}
	if !a.heap {
		flags = append(flags, "--heap-info")
	}
	if len(flags) == 0 {
		return "rtrace leaks --resource mmap shows mappings, rtrace info the free memory within malloc's heap (fordblks)"
	}
	target := fmt.Sprintf("-p %d %s", a.pid, strings.Join(flags, " "))
	if a.ended {
		target = strings.Join(flags, " ") + " -- COMMAND"
	}
	return "rtrace-bpf " + target + ", then rtrace info on that trace"
}

// size prints a number of bytes in the largest unit that fits.
func size(n uint64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// Reader is a trace.Reader that takes account of what it passes on.
type Reader struct {
	Account
	src trace.Reader
}

var _ trace.Reader = (*Reader)(nil)

// NewReader returns a Reader of src.
func NewReader(src trace.Reader) *Reader { return &Reader{src: src} }

// ReadRecord implements trace.Reader.
func (r *Reader) ReadRecord(rec *trace.Record) error {
	err := r.src.ReadRecord(rec)
	if err == nil && rec.Kind != trace.KindCall {
		r.Add(rec)
	}
	return err
}
