package blocks

import "rtrace-bpf/trace"

// Threads numbers the threads that make calls from 0, in the order of their
// first calls. The zero Threads is empty.
type Threads struct {
	// Most is the largest number of threads; 0 for no limit.
	Most int

	all     []Thread
	numbers map[ThreadKey]uint32
	recent  [16]recentThread
}

// recentThread is a thread that made calls recently.
type recentThread struct {
	ThreadKey
	number uint32 // 1 + the number; 0 for none
}

// ThreadKey identifies a thread of a trace.
type ThreadKey struct {
	PID int32
	ID  uint64 // see ThreadID
}

// Thread is a thread that makes calls.
type Thread struct {
	ThreadKey
	TID int32 // 0 if it is unknown
}

// Number returns the number of the thread that made a call. It reports false if
// there are too many threads.
func (t *Threads) Number(r *trace.Record) (n uint32, ok bool) {
	key := ThreadKey{r.PID, ThreadID(r)}
	recent := &t.recent[key.ID%uint64(len(t.recent))]
	if recent.number != 0 && recent.ThreadKey == key {
		return recent.number - 1, true
	}
	n, ok = t.numbers[key]
	if !ok {
		if t.Most > 0 && len(t.all) >= t.Most {
			return 0, false
		}
		n = uint32(len(t.all))
		t.all = append(t.all, Thread{key, r.TID})
		if t.numbers == nil {
			t.numbers = make(map[ThreadKey]uint32)
		}
		t.numbers[key] = n
	}
	*recent = recentThread{key, n + 1}
	return n, true
}

// At returns the thread with a number.
func (t *Threads) At(n uint32) Thread { return t.all[n] }

// ThreadID returns the id of the thread that made a call, or the format's
// substitute for it (Call.Thread); 0 if neither is known.
func ThreadID(r *trace.Record) uint64 {
	if r.TID > 0 {
		return uint64(r.TID)
	}
	return r.Call.Thread
}
