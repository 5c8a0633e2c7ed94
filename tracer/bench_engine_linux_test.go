package tracer

import (
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/record"
)

// recordedCalls is the records of a traced program in memory, in the form in which the tracer
// has them: the calls of a stack share its frames.
type recordedCalls struct {
	others []trace.Record // before the first call
	calls  []recordedCall
	stacks []trace.Stack
	byID   map[uint64]uint32
}

type recordedCall struct {
	time          int64
	id, old, size uint64
	pid, tid      int32
	resource      uint32
	stack         uint32 // 1 + the index in stacks; 0 for none
	op            trace.Op
}

func (c *recordedCalls) add(r *trace.Record) {
	if r.Kind != trace.KindCall {
		if len(c.calls) == 0 {
			c.others = append(c.others, *r.Clone())
		}
		return
	}
	k := &r.Call
	c.calls = append(c.calls, recordedCall{r.Time, k.ID, k.OldID, k.Size, r.PID, r.TID, k.Resource, c.stack(&k.Stack), k.Op})
}

func (c *recordedCalls) stack(s *trace.Stack) uint32 {
	if len(s.Frames) == 0 {
		return 0
	}
	n, known := c.byID[s.ID]
	if !known || s.ID == 0 {
		own := *s
		own.Frames = slices.Clone(s.Frames)
		c.stacks = append(c.stacks, own)
		n = uint32(len(c.stacks))
		c.byID[s.ID] = n
	}
	return n
}

// begin passes on the records before the first call.
func (c *recordedCalls) begin(add func(*trace.Record)) {
	for i := range c.others {
		add(c.others[i].Clone())
	}
}

// feed passes the calls on, as if they were made later by a time in ns. It returns the CPU time
// that this took, without garbage collection.
func (c *recordedCalls) feed(b *testing.B, later int64, add func(*trace.Record)) time.Duration {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := processCPU(b)
	r := trace.Record{Kind: trace.KindCall}
	for i := range c.calls {
		x, k := &c.calls[i], &r.Call
		r.Time, r.PID, r.TID = x.time+later, x.pid, x.tid
		k.Op, k.Resource, k.ID, k.OldID, k.Size, k.Stack = x.op, x.resource, x.id, x.old, x.size, trace.Stack{}
		if x.stack > 0 {
			k.Stack = c.stacks[x.stack-1]
		}
		add(&r)
	}
	return processCPU(b) - before
}

func processCPU(b *testing.B) time.Duration {
	b.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkEngineOfPrograms records programs and measures the CPU time of the engine of live
// views for each of their calls, with the IDs of stacks and without. It passes all calls on
// twice: the first time most call sites are new, the second time ("later") all are known. Then it measures
// refreshes: the interval, all figures and the suspects. %-at-200k is the share of a processor
// that 200,000 calls and one refresh a second take.
func BenchmarkEngineOfPrograms(b *testing.B) {
	testutil.NeedBPF(b)
	for _, w := range append(workloads(), workload{"node", startNode}) {
		b.Run(w.name, func(b *testing.B) {
			calls := recordedCalls{byID: make(map[uint64]uint32)}
			w.cost(b, observed(b, plan.Options{Depth: plan.DefaultDepth}, calls.add, new(record.Stats)))
			s := samples{}
			for b.Loop() {
				calls.measure(b, s, "")
				calls.withoutIDs().measure(b, s, "/no-IDs")
			}
			for name := range s {
				b.ReportMetric(s.median(name), name)
			}
		})
	}
}

func (c *recordedCalls) measure(b *testing.B, s samples, name string) {
	n := float64(len(c.calls))
	last := c.calls[len(c.calls)-1].time
	feeding := c.feed(b, 0, func(*trace.Record) {})
	e := aggregate.New()
	c.begin(e.Add)
	first := float64(c.feed(b, 0, e.Add)-feeding) / n
	length := last - c.calls[0].time
	later := float64(c.feed(b, length, e.Add)-feeding) / n
	refresh := refreshes(b, e, last+length)
	s.add("ns/call"+name, first)
	s.add("ns/later-call"+name, later)
	s.add("%-at-200k"+name, (first*200_000+refresh)/1e9*100)
	s.add("%-at-200k-later"+name, (later*200_000+refresh)/1e9*100)
	if name == "" {
		s.add("ms/refresh", refresh/1e6)
		s.add("sites", float64(e.Len()))
		s.add("kcalls", n/1000)
	}
}

// refreshes returns the CPU time of a refresh in ns, with garbage collection as rtrace-bpf top
// sets it.
func refreshes(b *testing.B, e *aggregate.Engine, now int64) float64 {
	const n = 10
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	runtime.GC()
	before := processCPU(b)
	for range n {
		e.Interval(now)
		e.State()
		e.Suspects(aggregate.Memory)
	}
	return float64(processCPU(b)-before) / n
}

// withoutIDs returns the same calls as a decoder has them.
func (c *recordedCalls) withoutIDs() *recordedCalls {
	plain := *c
	plain.stacks = slices.Clone(c.stacks)
	for i := range plain.stacks {
		plain.stacks[i].ID = 0
	}
	return &plain
}

func startNode(b *testing.B) (*exec.Cmd, *testutil.Child, func()) {
	const script = `
const all = new Map();
for (let i = 0; i < 5000; i++) {
	all.set(i % 500, JSON.parse(JSON.stringify({id: i, text: 'x'.repeat(i % 100)})));
	const data = Buffer.alloc(8192 + i % 4096);
	if (i % 10 == 0) require('zlib').deflateSync(data);
}`
	cmd := exec.Command(installed(b, "node"), "-e", fmt.Sprintf(
		"const fs = require('fs'); fs.writeSync(3, 'ready\\n'); fs.readSync(4, Buffer.alloc(1));%s", script))
	child := testutil.Start(b, cmd)
	child.Ready()
	return cmd, child, child.Go
}
