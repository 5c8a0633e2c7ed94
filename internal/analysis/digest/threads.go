package digest

import (
	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/trace"
)

// threads is the threads that used a type of resource.
type threads struct {
	list    []thread
	numbers map[threadKey]uint32 // index in list
	lastKey threadKey
	last    uint32 // 1 + the thread of lastKey
}

type thread struct {
	key threadKey
	tid int32
	use use
}

// number returns the number of the thread that made a call.
func (t *threads) number(r *trace.Record) uint32 {
	key := threadKey{r.PID, blocks.Thread(r)}
	if t.last != 0 && t.lastKey == key {
		return t.last - 1
	}
	n, ok := t.numbers[key]
	if !ok {
		n = uint32(len(t.list))
		t.list = append(t.list, thread{key: key, tid: r.TID})
		t.numbers[key] = n
	}
	t.lastKey, t.last = key, n+1
	return n
}
