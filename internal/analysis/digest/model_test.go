package digest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// generate returns a trace of random calls: two resources, one with reference
// counting, three processes with two threads each, moves, frees of unknown
// blocks, allocations of live ones, an exec, and gaps in the recording. Stacks
// have names. Several addresses have the same name, and one function is
// recursive.
func generate(seed uint64, calls int) []*trace.Record {
	r := rand.New(rand.NewPCG(seed, 1))
	records := []*trace.Record{
		{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "segment", RefCount: true}},
	}
	now := int64(1e12)
	for i := range calls {
		now += int64(r.ExpFloat64() * 1e4)
		rec := &trace.Record{Kind: trace.KindCall, Time: now, PID: 10 + int32(r.IntN(3))}
		rec.TID = rec.PID*10 + int32(r.IntN(2))
		c := &rec.Call
		c.Seq, c.Resource, c.ID = uint64(i+1), 1, 16*uint64(1+r.IntN(60))
		if r.IntN(5) == 0 {
			c.Resource = 2
		}
		switch n := r.IntN(20); {
		case n < 9:
			c.Op, c.Function = trace.OpFree, "free"
		case n < 11:
			c.Op, c.Function, c.OldID = trace.OpMove, "realloc", 16*uint64(r.IntN(60))
		default:
			c.Op, c.Function = trace.OpAlloc, "malloc"
		}
		if c.Op != trace.OpFree {
			c.Size = uint64(r.IntN(1 << r.IntN(16)))
			for depth := range 1 + r.IntN(4) {
				// Several addresses have the same name, and one function recurs.
				a := uint64(0x1000*(depth%2) + 16*r.IntN(6) + 16)
				c.Stack.Frames = append(c.Stack.Frames, a)
				c.Stack.Names = append(c.Stack.Names, fmt.Sprintf("f%d() from /lib/m%d.so", a/32, a>>12))
			}
			c.Stack.End = trace.StackComplete
		}
		records = append(records, rec)
		if i == calls/3 {
			records = append(records, &trace.Record{Kind: trace.KindExec, PID: 11, Time: now})
		}
		if i%(calls/5) == calls/6 {
			gap := &trace.Record{Kind: trace.KindLost, Time: now, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused, Since: now - 1}}
			if i > calls/2 {
				gap.PID, gap.Lost.Reason = 12, trace.LostProbesMoved
			}
			records = append(records, gap, &trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 1, Reason: "ring full"}})
		}
	}
	return records
}

// model sums up a trace of one type of resource in the simplest way: it keeps
// all blocks and examines all of them after each call.
type model struct {
	total   digest.Use
	freed   live.Amount
	peak    uint64 // event
	stacks  map[string]*digest.Use
	threads map[int32]*digest.Use
	self    map[string]*digest.Use // functions
	whole   map[string]*digest.Use
	sizes   map[uint64]live.Amount // exact, allocated
	lives   []life                 // of blocks that were freed
	oldest  map[string]uint64      // event, by stack
	live    []uint64               // bytes after each event
	blocks  []*block               // all
}

type life struct {
	events uint64
	time   int64
	size   uint64
}

type block struct {
	pid, tid   int32
	id, size   uint64
	refs       int
	stack      string
	names      []string
	born       uint64 // before its moves
	since      uint64 // event of the allocation
	bornAt     int64
	allocation int // of its thread
	unknown    bool
	temporary  bool
	made       int64 // times since the first call, also of other resources
	ended      int64 // -1 if it is live at the end
}

func (b *block) each(m *model, f func(*digest.Use)) {
	f(get(m.stacks, b.stack))
	f(get(m.threads, b.tid))
	f(get(m.self, b.names[0]))
	seen := map[string]bool{}
	for _, n := range b.names {
		if !seen[n] {
			f(get(m.whole, n))
		}
		seen[n] = true
	}
	f(&m.total)
}

func get[K comparable](m map[K]*digest.Use, k K) *digest.Use {
	if m[k] == nil {
		m[k] = new(digest.Use)
	}
	return m[k]
}

func grow(a *live.Amount, size uint64) { a.Blocks, a.Bytes = a.Blocks+1, a.Bytes+size }

func solve(records []*trace.Record, id uint32, counted bool) *model {
	m := &model{
		stacks: map[string]*digest.Use{}, threads: map[int32]*digest.Use{}, self: map[string]*digest.Use{}, whole: map[string]*digest.Use{},
		sizes: map[uint64]live.Amount{}, oldest: map[string]uint64{},
	}
	var (
		live  []*block
		event uint64
		start int64
		now   int64
		most  uint64
		nth   = map[int32]int{}
		peak  []*block
	)
	find := func(pid int32, id uint64) int {
		for i, b := range live {
			if b.pid == pid && b.id == id {
				return i
			}
		}
		return -1
	}
	for _, r := range records {
		if r.Kind == trace.KindExec {
			kept := live[:0]
			for _, b := range live {
				if b.pid != r.PID {
					kept = append(kept, b)
				} else {
					b.ended = now
				}
			}
			live = kept
			continue
		}
		if r.Kind == trace.KindLost && r.Lost.Gap() {
			for _, b := range live {
				b.unknown = b.unknown || r.PID == 0 || r.PID == b.pid
			}
		}
		if r.Kind != trace.KindCall {
			continue
		}
		event++
		if start == 0 {
			start = r.Time
		}
		now = r.Time - start
		c := &r.Call
		if c.Resource != id {
			m.live = append(m.live, bytesOf(live))
			continue
		}
		born, bornAt := event, r.Time
		old := c.ID
		if c.Op == trace.OpMove {
			old = c.OldID
		}
		if i := find(r.PID, old); i >= 0 && (c.Op == trace.OpFree || c.Op == trace.OpMove && old != 0) {
			b := live[i]
			if b.refs--; !counted || b.refs == 0 {
				live = append(live[:i:i], live[i+1:]...)
				grow(&m.freed, b.size)
				b.ended = now
				if !b.unknown {
					m.lives = append(m.lives, life{event - b.born, r.Time - b.bornAt, b.size})
					if b.tid == r.TID && b.allocation == nth[r.TID] {
						b.temporary = true
						b.each(m, func(u *digest.Use) { grow(&u.Temporary, b.size) })
					}
					if c.Op == trace.OpMove {
						born, bornAt = b.born, b.bornAt
					}
				}
			}
		}
		if c.Op == trace.OpAlloc || c.Op == trace.OpMove {
			if i := find(r.PID, c.ID); i >= 0 && counted && !live[i].unknown {
				live[i].refs++
			} else {
				if i >= 0 {
					live[i].ended = now
					live = append(live[:i:i], live[i+1:]...)
				}
				nth[r.TID]++
				b := &block{
					pid: r.PID, tid: r.TID, id: c.ID, size: c.Size, refs: 1, born: born, bornAt: bornAt, since: event, allocation: nth[r.TID], made: now, ended: -1,
					names: c.Stack.Names, stack: strings.Join(c.Stack.Names, "\n"),
				}
				live, m.blocks = append(live, b), append(m.blocks, b)
				b.each(m, func(u *digest.Use) { grow(&u.Allocated, b.size) })
				a := m.sizes[c.Size]
				grow(&a, c.Size)
				m.sizes[c.Size] = a
			}
		}
		bytes := bytesOf(live)
		m.live = append(m.live, bytes)
		if bytes > most || bytes == most && len(live) > len(peak) {
			most, m.peak = bytes, event
			peak = append([]*block(nil), live...)
		}
	}
	for _, b := range peak {
		b.each(m, func(u *digest.Use) { grow(&u.AtPeak, b.size) })
	}
	for _, b := range live {
		if b.unknown {
			b.each(m, func(u *digest.Use) { grow(&u.Unknown, b.size) })
			continue
		}
		b.each(m, func(u *digest.Use) { grow(&u.Live, b.size) })
		if e := m.oldest[b.stack]; e == 0 || b.born < e {
			m.oldest[b.stack] = b.born
		}
	}
	return m
}

func bytesOf(live []*block) (n uint64) {
	for _, b := range live {
		n += b.size
	}
	return n
}
