package record

import (
	"maps"

	"rtrace-bpf/internal/linux/proc"
)

// roster holds the threads of a process with their names, at the current place in the
// order of events.
type roster struct {
	threads map[uint32]threadName
	ended   map[uint32]uint64 // when threads ended; only recent ones
}

type threadName struct {
	name    string
	changed uint64 // when the thread got the name
}

// When more than endedMost ended threads are remembered, the roster forgets those that
// ended more than endedKept nanoseconds ago.
const (
	endedMost = 1024
	endedKept = 10_000_000_000
)

// newRoster returns the roster of threads that were read at time.
func newRoster(threads []proc.Thread, time uint64) roster {
	r := roster{map[uint32]threadName{}, map[uint32]uint64{}}
	for _, t := range threads {
		r.threads[uint32(t.TID)] = threadName{t.Name, time}
	}
	return r
}

// rename records a new name at time. It returns false if a later name is known.
func (r *roster) rename(tid uint32, name string, time uint64) bool {
	if old, ok := r.threads[tid]; ok && old.changed > time {
		return false
	}
	r.threads[tid] = threadName{name, time}
	return true
}

// made records that parent made the thread tid, which inherits its name.
func (r *roster) made(tid, parent uint32, time uint64) {
	if _, ok := r.threads[tid]; !ok {
		r.threads[tid] = threadName{r.threads[parent].name, time}
	}
	delete(r.ended, tid)
}

func (r *roster) left(tid uint32, time uint64) {
	delete(r.threads, tid)
	r.ended[tid] = time
	if len(r.ended) > endedMost {
		for tid, at := range r.ended {
			if at+endedKept < time {
				delete(r.ended, tid)
			}
		}
	}
}

// replaced records that the process replaced its program and has one thread now. Threads
// known from a later time stay.
func (r *roster) replaced(tid uint32, name string, time uint64) {
	maps.DeleteFunc(r.threads, func(_ uint32, t threadName) bool { return t.changed < time })
	r.rename(tid, name, time)
}

// audit compares the roster with all threads of the process, which were read between the
// times from and to. It returns the threads that differ, and records them.
func (r *roster) audit(all []proc.Thread, from, to uint64) (differ []proc.Thread) {
	for _, t := range all {
		tid := uint32(t.TID)
		known, ok := r.threads[tid]
		switch {
		case !ok && r.ended[tid] >= from: // it ended meanwhile
		case ok && known.changed >= from: // it got its name meanwhile
		case !ok || known.name != t.Name:
			r.threads[tid] = threadName{t.Name, to}
			differ = append(differ, t)
		}
	}
	return differ
}
