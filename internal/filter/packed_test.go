package filter

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// TestPacked packs calls with numbers of all lengths, and unpacks them.
func TestPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() uint64 {
		switch random.IntN(8) {
		case 0:
			return 0
		case 1:
			return math.MaxUint64
		}
		return random.Uint64() >> random.UintN(64)
	}
	var (
		p     packed
		data  = make([]byte, 0, 1<<20)
		calls []trace.Record
		names []uint32
	)
	for range 5000 {
		r := trace.Record{Kind: trace.KindCall, Time: int64(number()), PID: int32(number())}
		r.Call = trace.Call{
			Seq: number(), Op: trace.Op(random.IntN(4)), ID: number(), Size: number(),
			Resource: uint32(number()) >> 28, Context: uint32(number()) >> 28,
		}
		if random.IntN(4) == 0 {
			r.Call.Args = make([]trace.Arg, 1)
		}
		before := len(data)
		names = append(names, uint32(number())>>30)
		data = p.append(data, &r, names[len(names)-1])
		if n := len(data) - before + wordSize; n > maxPacked {
			t.Fatalf("a call takes %d bytes with the room after it", n)
		}
		calls = append(calls, r)
	}
	p = packed{}
	rest := data
	for i := range calls {
		r, c := &calls[i], &calls[i].Call
		rest = p.next(rest)
		want := packed{
			seq: c.Seq, id: c.ID, size: c.Size, time: r.Time, function: names[i],
			resource: c.Resource, context: c.Context, pid: r.PID, op: c.Op, args: len(c.Args) > 0,
		}
		if d := cmp.Diff(want, p, cmp.AllowUnexported(packed{})); d != "" {
			t.Fatalf("call %d (-want +got):\n%s", i, d)
		}
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
}
