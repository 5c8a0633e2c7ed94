package replay

import (
	"fmt"

	"rtrace-bpf/trace"
)

// thread is a traced thread.
type thread struct {
	words       stream
	seen        map[uint32]uint32 // how far another thread is, as this one knows
	free        list              // slots it freed
	first, last uint64            // its first and last call, as numbers of all calls
	lane        uint32            // set by the layout
	before      uint32            // words in front of it in its lane
	main        bool
}

// thread returns the thread of a call.
func (b *Builder) thread(r *trace.Record) uint32 {
	id := threadID(r)
	if !b.recent || id != b.lastID {
		t, ok := b.byID[id]
		if !ok {
			if len(b.threads) == numberMask {
				b.err = fmt.Errorf("more than %d threads", numberMask)
				return 0
			}
			t = uint32(len(b.threads))
			b.threads = append(b.threads, &thread{first: b.calls + 1, main: r.PID != 0 && r.PID == r.TID})
			b.byID[id] = t
		}
		b.recent, b.lastID, b.last = true, id, t
	}
	b.calls++
	b.threads[b.last].last = b.calls
	return b.last
}

// threadID returns what tells the threads of a trace apart.
func threadID(r *trace.Record) uint64 {
	if r.TID == 0 && r.Kind == trace.KindCall {
		return r.Call.Thread
	}
	return uint64(uint32(r.TID))
}

// exit ends a thread: its id may be used again. The main thread stays: what calls
// follow its exit are of the end of the process.
func (b *Builder) exit(r *trace.Record) {
	id := threadID(r)
	t, ok := b.byID[id]
	if !r.Exit.Process && ok && !b.threads[t].main {
		delete(b.byID, id)
		b.recent = false
	}
}

// process is the one process of a trace that is replayed: the first that makes a
// call.
type process struct {
	chosen bool
	pid    int32
	number int // it was the last of that many to begin when it was chosen
	begun  int
	last   int32 // that began
}

// begin takes note of a process of the trace. A format may begin the same one twice.
func (p *process) begin(r *trace.Record) {
	if p.begun == 0 || r.PID == 0 || r.PID != p.last {
		p.begun++
	}
	p.last = r.PID
}

// has says whether a record is of the process. Formats without process ids have
// one process after the other.
func (p *process) has(r *trace.Record) bool {
	if !p.chosen && r.Kind == trace.KindCall {
		p.chosen, p.pid, p.number = true, r.PID, p.begun
	}
	if p.pid != 0 && r.PID != 0 {
		return r.PID == p.pid
	}
	return p.number == p.begun
}
