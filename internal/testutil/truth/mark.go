package truth

import (
	"cmp"
	"slices"

	"rtrace-bpf/trace"
)

// Mark is the state of a process when its trace began. What was logged before is not in the
// trace, and blocks that were live may be freed in it.
type Mark struct {
	log  *Log
	done map[int32]int // entries of each thread
	live map[uint64]block
}

// NewMark reads the log of a process that does not run, as at a gate, and will not until its
// trace has begun.
func NewMark(dir string, pid int) (*Mark, error) {
	all, err := Open(dir, pid)
	if err != nil {
		return nil, err
	}
	m := &Mark{log: all[len(all)-1], done: map[int32]int{}, live: map[uint64]block{}}
	type change struct {
		Event
		time int64
		tid  int32
	}
	var changes []change
	for tid := range m.log.threads {
		c := m.log.cursor(tid)
		for {
			e, err := c.next()
			if err != nil {
				return nil, err
			}
			if e == nil {
				break
			}
			v, at := e.Event(), e.End
			if v.Op == trace.OpFree {
				at = e.Begin
			}
			changes = append(changes, change{v, at, tid})
		}
		m.done[tid] = c.index
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.time, b.time) })
	for _, v := range changes {
		if v.Op == trace.OpNone {
			continue
		}
		delete(m.live, v.Old)
		if v.Made != 0 {
			m.live[v.Made] = block{event: v.Event, tid: v.tid, early: true}
		}
	}
	return m, nil
}
