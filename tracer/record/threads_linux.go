package record

import (
	"maps"

	"rtrace-bpf/internal/linux/proc"
)

// roster is the threads of a process with their names, as records pass by in order.
type roster struct {
	threads map[uint32]threadName
	ended   map[uint32]uint64 // when threads ended; those of the last while
}

type threadName struct {
	name    string
	changed uint64 // when it got the name
}

// endedMost is how many threads that ended a roster remembers before it forgets those
// that ended more than endedKept nanoseconds ago.
const (
	endedMost = 1024
	endedKept = 10_000_000_000
)

// newRoster returns the roster of threads that were read at a time.
func newRoster(threads []proc.Thread, time uint64) roster {
	r := roster{map[uint32]threadName{}, map[uint32]uint64{}}
	for _, t := range threads {
		r.threads[uint32(t.TID)] = threadName{t.Name, time}
	}
	return r
}

// Rename takes a new name, and reports false if a later one is known.
func (r *roster) Rename(tid uint32, name string, time uint64) bool {
	if old, ok := r.threads[tid]; ok && old.changed > time {
		return false
	}
	r.threads[tid] = threadName{name, time}
	return true
}

// made says that a thread made another one, which has its name.
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

// replaced says that the process became another program, with one thread. What is
// known from later stays.
func (r *roster) replaced(tid uint32, name string, time uint64) {
	maps.DeleteFunc(r.threads, func(_ uint32, t threadName) bool { return t.changed < time })
	r.Rename(tid, name, time)
}

// audit compares with all threads of the process, which were read from the time from
// on, up to to. It returns those that are not as expected, and takes them over.
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
