package replay_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"rtrace-bpf/trace"
)

// call is the expected replay of one call of a trace: the function, the block
// that ends and the one that begins (their numbers in the trace, 0 for none).
type call struct {
	thread   int // 0 is the main thread
	function string
	old, new int
	size     uint64
	align    uint64
}

// maker builds a trace and, without the package under test, the expected
// replay.
type maker struct {
	records []*trace.Record
	calls   []call
	blocks  int
	address map[uint64]int // numbers of live blocks
	live    []uint64
}

const mainTID = 100

func newMaker() *maker { return &maker{address: make(map[uint64]int)} }

func (m *maker) record(thread int, c trace.Call) {
	m.records = append(m.records, &trace.Record{Kind: trace.KindCall, PID: mainTID, TID: mainTID + int32(thread), Call: c})
}

// alloc allocates at an address with the given function.
func (m *maker) alloc(thread int, function string, id, size uint64, args ...trace.Arg) {
	m.record(thread, trace.Call{Op: trace.OpAlloc, Function: function, ID: id, Size: size, Args: args})
	m.blocks++
	c := call{thread: thread, function: function, new: m.blocks, size: size}
	switch function {
	case "memalign", "posix_memalign", "aligned_alloc":
		c.align = 64
		if len(args) > 0 {
			_, _ = fmt.Sscan(args[0].Value, &c.align)
		}
	}
	m.calls = append(m.calls, c)
	m.address[id] = m.blocks
	m.live = append(m.live, id)
}

func (m *maker) gone(id uint64) int {
	n := m.address[id]
	delete(m.address, id)
	m.live = slices.DeleteFunc(m.live, func(x uint64) bool { return x == id })
	return n
}

func (m *maker) free(thread int, id uint64) {
	m.record(thread, trace.Call{Op: trace.OpFree, Function: "free", ID: id})
	m.calls = append(m.calls, call{thread: thread, function: "free", old: m.gone(id)})
}

func (m *maker) move(thread int, from, to, size uint64) {
	m.record(thread, trace.Call{Op: trace.OpMove, Function: "realloc", ID: to, OldID: from, Size: size})
	old := m.gone(from)
	m.blocks++
	m.calls = append(m.calls, call{thread: thread, function: "realloc", old: old, new: m.blocks, size: size})
	m.address[to] = m.blocks
	m.live = append(m.live, to)
}

// unused returns an unused address, aligned to 4096.
func (m *maker) unused(r *rand.Rand) uint64 {
	for {
		id := (1 + r.Uint64N(4096)) << 12
		if _, ok := m.address[id]; !ok {
			return id
		}
	}
}

// random builds a trace of many calls of some threads. The number of live
// blocks alternates between about most and an eighth of that, and one thread
// makes most of the calls, so that blocks and slots move between threads. Each
// thread makes its first call, in order, at the start and its last at the end,
// so none can take the place of another.
func random(seed uint64, threads, calls, most int) *maker {
	m := newMaker()
	r := rand.New(rand.NewPCG(seed, 1))
	functions := []string{"malloc", "malloc", "malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"}
	size := func() uint64 { return 64 * r.Uint64N(1<<r.IntN(8)) }
	for t := range threads {
		m.alloc(t, "malloc", m.unused(r), size())
	}
	for i := range calls {
		phase := i * 12 / calls
		t, aim := phase%threads, most
		if r.IntN(4) == 0 {
			t = r.IntN(threads)
		}
		if phase%2 != 0 {
			aim = 1 + most/8
		}
		if len(m.live) > 0 && r.IntN(2*aim) < len(m.live) {
			id := m.live[r.IntN(len(m.live))]
			if r.IntN(3) == 0 {
				to := id
				if r.IntN(2) == 0 {
					to = m.unused(r)
				}
				m.move(t, id, to, 64+size())
			} else {
				m.free(t, id)
			}
			continue
		}
		m.alloc(t, functions[r.IntN(len(functions))], m.unused(r), size())
	}
	for t := range threads {
		m.alloc(t, "malloc", m.unused(r), size())
	}
	return m
}
