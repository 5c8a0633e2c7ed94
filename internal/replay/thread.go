package replay

import (
	"fmt"

	"rtrace-bpf/trace"
)

// thread is a traced thread.
type thread struct {
	words       stream
	seen        map[uint32]uint32 // words of other threads that are known to be done
	free        list              // slots that it freed
	first, last uint64            // numbers of its first and last call among all calls
	lane        uint32            // set by the layout
	before      uint32            // number of words before it in its lane
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

// threadID returns the number that identifies the thread of a record in its
// trace.
func threadID(r *trace.Record) uint64 {
	if r.TID == 0 && r.Kind == trace.KindCall {
		return r.Call.Thread
	}
	return uint64(uint32(r.TID))
}

// exit ends a thread, whose ID may be reused. The main thread stays: calls
// after its exit belong to the end of the process.
func (b *Builder) exit(r *trace.Record) {
	id := threadID(r)
	t, ok := b.byID[id]
	if !r.Exit.Process && ok && !b.threads[t].main {
		delete(b.byID, id)
		b.recent = false
	}
}

// process identifies the replayed process of a trace: the first that makes a
// call.
type process struct {
	chosen bool
	pid    int32
	number int // value of begun when it was chosen
	begun  int
	last   int32 // pid of the last one that began
}

// begin counts the beginning of a process. Some formats begin the same process
// twice.
func (p *process) begin(r *trace.Record) {
	if p.begun == 0 || r.PID == 0 || r.PID != p.last {
		p.begun++
	}
	p.last = r.PID
}

// has reports whether a record belongs to the process. In formats without
// process IDs, processes follow one another.
func (p *process) has(r *trace.Record) bool {
	if !p.chosen && r.Kind == trace.KindCall {
		p.chosen, p.pid, p.number = true, r.PID, p.begun
	}
	if p.pid != 0 && r.PID != 0 {
		return r.PID == p.pid
	}
	return p.number == p.begun
}
