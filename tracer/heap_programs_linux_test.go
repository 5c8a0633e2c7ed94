package tracer

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// Programs that were not written for these tests, with threads, and with a heap from
// before the trace.
func TestBlocksOfRealProgramsAreInTheHeap(t *testing.T) {
	testutil.NeedBPF(t)
	grows := func(o *plan.Options) { o.HeapGrowth = true }
	t.Run("python3", func(t *testing.T) {
		const script = `import os, json, sqlite3, threading
os.write(3, b"ready\n"); os.read(4, 1)
def work():
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a, b)")
    db.executemany("insert into t values(?, ?)", ((i, "x" * i) for i in range(400)))
    rows = json.loads(json.dumps(db.execute("select * from t order by b").fetchall()))
    text = ""
    for i in range(3000):
        text += "%500d" % i # realloc, at last of a block with a mapping of its own
    return bytearray(3 << 20), [b"x" * i for i in range(5000)]
threads = [threading.Thread(target=work) for i in range(3)]
[x.start() for x in threads]; work(); [x.join() for x in threads]; work()`
		cmd := exec.Command(installed(t, "/usr/bin/python3"), "-c", script)
		cmd.Env = append(os.Environ(), "PYTHONMALLOC=malloc")
		child := testutil.Start(t, cmd)
		child.Ready()
		r := attachTo(t, child.PID, grows)
		child.Go()
		child.Succeed()
		records := r.end()
		r.whole()
		if heap := insideHeap(t, records); len(heap) < 4 {
			t.Errorf("the heaps of several threads are only %#x", heap)
		}
	})
	// The trace begins while all threads allocate.
	t.Run("python3, busy", func(t *testing.T) {
		const script = `import os, threading
def work(last):
    kept = []
    while not last.is_set():
        kept.append([bytearray(200) for i in range(300)] + [bytearray(300000)])
        if len(kept) == 40:
            kept.clear()
last = threading.Event()
threads = [threading.Thread(target=work, args=(last,)) for i in range(3)]
[x.start() for x in threads]
os.write(3, b"ready\n"); os.read(4, 1)
last.set(); [x.join() for x in threads]`
		cmd := exec.Command(installed(t, "/usr/bin/python3"), "-c", script)
		cmd.Env = append(os.Environ(), "PYTHONMALLOC=malloc", "MALLOC_MMAP_THRESHOLD_=131072")
		child := testutil.Start(t, cmd)
		child.Ready()
		calls := 0
		r := watched(t, child.PID, func(o *plan.Options) { o.HeapGrowth = true }, func(_ *recording, rec *trace.Record) {
			if rec.Kind == trace.KindCall {
				if calls++; calls == 50000 {
					child.Go()
				}
			}
		})
		child.Succeed()
		records := r.end()
		r.whole()
		insideHeap(t, records)
	})
	t.Run("sqlite3", func(t *testing.T) {
		child, feed := fed(t, exec.Command(installed(t, "sqlite3"), ":memory:"), "select 'up';", "up")
		r := attachTo(t, child.PID, grows)
		finishWith(t, feed, "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<20000)"+
			" insert into t select i,'text '||i from n; create index ti on t(b);"+
			" select a, group_concat(b) from t where b like '%7%' group by a % 100 order by b; select json_group_array(b) from t;\n")
		child.Succeed()
		records := r.end()
		r.whole()
		insideHeap(t, records)
	})
}

// After an exec the heap is that of the new program, which grows from nothing.
func TestHeapAfterExec(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, heapAfterExec)
}

func heapAfterExec(t *testing.T, build testutil.Builder) {
	child := testutil.Spawn(t, build(t, "exec"), "10", build(t, "heapgrow"))
	child.Ready()
	r := attachTo(t, child.PID, func(o *plan.Options) { o.HeapGrowth = true })
	child.Go()
	child.Ready() // the second program
	child.Go()
	child.Succeed()
	records := r.end()
	r.whole()
	insideHeap(t, records)
	i := slices.IndexFunc(records, func(rec *trace.Record) bool { return rec.Kind == trace.KindExec })
	if i < 0 || len(ofKind(records[i:], trace.KindHeapGrow)) < 1900 {
		t.Errorf("no growth after the exec, which is record %d of %d", i, len(records))
	}
}

// The mechanisms of the oldest kernels record the same.
func TestHeapGrowthOldest(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, heapGrowthOldest)
}

func heapGrowthOldest(t *testing.T, build testutil.Builder) {
	_, report, records := traceRun(t, func(o *plan.Options) {
		oldest(o)
		o.HeapGrowth = true
	}, build(t, "heapgrow"))
	insideHeap(t, records)
	compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
}

// A signal interrupts the allocator between its call for memory and the return. Growth
// that cannot be known then is counted as lost, and what follows is correct.
func TestHeapGrowthAndSignals(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, heapGrowthAndSignals)
}

func heapGrowthAndSignals(t *testing.T, build testutil.Builder) {
	for name, ways := range plan.WayChoices() {
		t.Run(name, func(t *testing.T) { heapGrowthAndSignalsBy(t, build, ways) })
	}
}

func heapGrowthAndSignalsBy(t *testing.T, build testutil.Builder, ways plan.Ways) {
	const inner, last = 0x501000, 0x701000
	for how, want := range map[string]struct {
		grown []uint64
		lost  [order.LossCount]uint64
	}{
		"inside": {[]uint64{inner, last}, [order.LossCount]uint64{order.LossNesting: 1}},
		// malloc did not return, and neither did its call of mmap.
		"leave": {[]uint64{last}, [order.LossCount]uint64{order.LossMissedReturn: 2}},
	} {
		t.Run(how, func(t *testing.T) {
			child := testutil.Spawn(t, build(t, "heapsignal"), how)
			child.Ready()
			p, err := plan.New(plan.Options{PID: child.PID})
			if errors.Is(err, host.ErrReturnProbes) {
				t.Skipf("SKIPPED: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			r := attachTo(t, child.PID, func(o *plan.Options) { o.HeapGrowth, o.Ways = true, ways })
			if how == "leave" && r.isInside("malloc") {
				want.lost[order.LossMissedReturn]-- // that malloc is not open, so only mmap's call counts
			}
			child.Go()
			report := child.Report()
			records := r.end()
			var grown []uint64
			for _, rec := range ofKind(records, trace.KindHeapGrow) {
				if rec.TID != 0 {
					grown = append(grown, rec.HeapGrow.Size)
				}
			}
			if !slices.Equal(grown, want.grown) {
				t.Errorf("growths of %#x bytes, want %#x", grown, want.grown)
			}
			if lost := r.tracer.Stats().Lost; lost != want.lost {
				t.Errorf("lost %v, want %v", lost, want.lost)
			}
			compare(t, records, report)
		})
	}
}
