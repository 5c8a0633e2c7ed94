// Package rss compares the growth of a process's resident memory while it was
// traced with the blocks that were allocated meanwhile and are still live. All
// views use it, so that they agree on when the growth lies elsewhere.
package rss

import (
	"fmt"
	"strings"

	"rtrace-bpf/trace"
)

// The growth lies elsewhere if the traced blocks do not account for at least
// leastBytes of it, and for more than half of the whole.
//
// leastBytes is more than a program grows without any block: by stacks, code
// and the rounding of the kernel's own count on machines with many processors.
// blockCost is the memory that an allocator takes for a block in addition to
// its size: glibc's smallest block has 32 bytes. Half leaves room for rounded
// sizes and holes.
const (
	leastBytes = 32 << 20
	blockCost  = 32
)

// memory is the resource type of memory blocks.
const memory = "memory"

// Account collects the relevant facts from the records of a trace.
type Account struct {
	pid         int32
	start, last uint64 // bytes
	read        int    // KindRSS records since the last exec
	traces      int
	lost        uint64 // events that hide frees
	pauses      uint64 // gaps in the recording
	mappings    bool   // mmap is traced
	heap        bool   // the trace has the state of the heap
	memory      bool   // every call of malloc is traced
	ended       bool   // the process exited
}

// Add processes a record.
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

// Live holds the blocks of memory that were allocated since the start of the
// trace and are live at its end.
type Live struct {
	Blocks uint64 `json:"live_blocks"`
	Bytes  uint64 `json:"live_bytes"`
	// Unknown blocks may have been freed in a gap of the recording. They are
	// not among the live ones.
	UnknownBlocks uint64 `json:"unknown_blocks,omitempty"`
	UnknownBytes  uint64 `json:"unknown_bytes,omitempty"`
}

// Growth is the change of the resident memory, in bytes.
type Growth struct {
	Start uint64 `json:"start"`
	End   uint64 `json:"end"`
	Live
	// Elsewhere reports that the memory grew by much more than the live blocks.
	Elsewhere bool `json:"grew_elsewhere"`
	// Verdict states that in words; it is empty if Elsewhere is false.
	Verdict string `json:"verdict,omitempty"`
}

// Growth compares the growth of the resident memory with the blocks that are
// live at the end of the trace. It returns nil if the trace lacks the resident
// memory at its start or its end, or does not have every call of malloc.
func (a *Account) Growth(live Live) *Growth {
	if a.read < 2 || a.traces > 1 || !a.memory {
		return nil
	}
	g := &Growth{Start: a.start, End: a.last, Live: live}
	// Unknown blocks count as live, so that growth that they may explain is not
	// reported.
	if g.Elsewhere = elsewhere(a.start, a.last, live.Blocks+live.UnknownBlocks, live.Bytes+live.UnknownBytes); g.Elsewhere {
		g.Verdict = fmt.Sprintf("RSS grew by %s, blocks allocated and still live by %s: %s.%s Next: %s",
			size(a.last-a.start), size(live.Bytes), "the growth is not in the traced blocks", a.doubt(), a.next())
	}
	return g
}

// elsewhere reports whether the growth lies elsewhere than in the blocks.
func elsewhere(start, end, blocks, bytes uint64) bool {
	if end <= start || blocks > 1<<40 || bytes > 1<<60 {
		return false
	}
	grown, known := end-start, bytes+blockCost*blocks
	return grown > known && grown-known >= leastBytes && grown-known > grown/2
}

// doubt returns a sentence about gaps in the trace that may hide blocks, or an
// empty string.
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

// next returns the command to run next.
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

// size formats a number of bytes in the largest unit that fits.
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

// Reader is a trace.Reader that feeds an Account with the records it returns.
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
