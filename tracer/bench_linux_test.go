package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/probe"
	"rtrace-bpf/tracer/record"
)

// The benchmarks measure costs as ratios within one run, since machines are
// noisy: each iteration makes every variant once, and the medians over the
// iterations are reported. docs/performance.md has the method and results;
// run them with `make bench`, at -benchtime=7x or more.

// Pairs of malloc and free per thread and run. The reader is measured with more of them,
// so that one-time costs (the first touch of a ring's pages) matter little.
const (
	benchPairs  = 300_000
	readerPairs = 2_000_000
)

// samples collects figures by name.
type samples map[string][]float64

func (s samples) add(name string, value float64) { s[name] = append(s[name], value) }

func (s samples) median(name string) float64 {
	all := slices.Clone(s[name])
	slices.Sort(all)
	return all[len(all)/2]
}

// nsPerPair runs the loop program while attach is in effect and returns the CPU time in
// ns that the program spent on a pair of malloc and free.
func nsPerPair(b *testing.B, threads int, attach func(pid int) (detach func())) float64 {
	b.Helper()
	return nsPerPairBelow(b, threads, 0, nil, attach)
}

// nsPerPairBelow is nsPerPair with depth more frames on the stack, of a program compiled
// with flags.
func nsPerPairBelow(b *testing.B, threads, depth int, flags []string, attach func(pid int) (detach func())) float64 {
	b.Helper()
	child := testutil.Spawn(b, testutil.Build(b, "loop", flags...), strconv.Itoa(threads), strconv.Itoa(benchPairs), "32", strconv.Itoa(depth))
	child.Ready()
	detach := attach(child.PID)
	child.Go()
	report := child.Report()
	detach()
	return report.NsPerPair
}

func untraced(int) func() { return func() {} }

// empty attaches programs that do nothing to the sites of a plan: the cost of the
// kernel's traps alone.
func empty(b *testing.B) func(pid int) func() {
	return func(pid int) func() {
		p := planFor(b, plan.Options{PID: pid})
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual BSD/GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		})
		if err != nil {
			b.Fatal(err)
		}
		k := &kernel{probes: probe.New(p)}
		if err := k.probes.Start(); err != nil {
			b.Fatal(err)
		}
		placements := []plan.Placement{{Program: program, Probes: p.Layout.Returns, Ret: true}, {Program: program, Probes: p.Layout.Entries}}
		if err := k.probes.Attach(placements, nil); err != nil {
			b.Fatal(err)
		}
		return func() {
			if err := errors.Join(k.Close(), program.Close(), p.Close()); err != nil {
				b.Error(err)
			}
		}
	}
}

func planFor(b *testing.B, o plan.Options) *plan.Plan {
	b.Helper()
	p, err := plan.New(o)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// traced records with the given options and discards the records. It fails the benchmark
// if anything is lost.
func traced(b *testing.B, o plan.Options) func(pid int) func() {
	return observed(b, o, func(*trace.Record) {}, new(record.Stats))
}

// observed is traced with a function that gets the records and, after detaching, one that
// gets the counts.
func observed(b *testing.B, o plan.Options, watch func(rec *trace.Record), stats *record.Stats) func(pid int) func() {
	return func(pid int) func() {
		o.PID = pid
		tracer, err := Open(planFor(b, o))
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			var rec trace.Record
			var err error
			for err == nil {
				if err = tracer.ReadRecord(&rec); err == nil {
					watch(&rec)
				}
			}
			done <- err
		}()
		return func() {
			if err := <-done; !errors.Is(err, io.EOF) {
				b.Error(err)
			}
			*stats = tracer.Stats()
			if stats.LostEvents() > 0 {
				b.Errorf("%d events lost: %v", stats.LostEvents(), stats.Lost)
			}
			if err := tracer.Close(); err != nil {
				b.Error(err)
			}
		}
	}
}

// BenchmarkOverhead compares what tracing costs the traced process with F, the cost of
// empty programs at the same sites.
func BenchmarkOverhead(b *testing.B) {
	testutil.NeedBPF(b)
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			s := samples{}
			for b.Loop() {
				base := nsPerPair(b, threads, untraced)
				s.add("untraced-ns/pair", base)
				floor := nsPerPair(b, threads, empty(b)) - base
				s.add("F-ns/pair", floor)
				s.add("events/F", (nsPerPair(b, threads, traced(b, plan.Options{}))-base)/floor)
				s.add("stacks/F", (nsPerPair(b, threads, traced(b, plan.Options{Depth: plan.DefaultDepth}))-base)/floor)
				s.add("perfbuf/F", (nsPerPair(b, threads, traced(b, plan.Options{Buffer: plan.BufferPerf}))-base)/floor)
			}
			for name := range s {
				b.ReportMetric(s.median(name), name)
			}
		})
	}
}

// BenchmarkBystander measures a process that is not traced, while another process, which
// waits, is traced: both use the same C library.
func BenchmarkBystander(b *testing.B) {
	testutil.NeedBPF(b)
	s := samples{}
	for b.Loop() {
		base := nsPerPair(b, 1, untraced)
		other := testutil.Spawn(b, testutil.Build(b, "loop"), "1", "1")
		other.Ready()
		detach := traced(b, plan.Options{})(other.PID)
		s.add("ratio", nsPerPair(b, 1, untraced)/base)
		other.Go()
		other.Succeed()
		detach()
	}
	b.ReportMetric(s.median("ratio"), "ratio")
}

// cpu returns the CPU time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReader measures the tracer's own CPU time per event with two producers at full
// speed: for the rings only, and with records, encoder and file.
func BenchmarkReader(b *testing.B) {
	testutil.NeedBPF(b)
	run := func(b *testing.B, read func(t *Tracer) int) {
		s := samples{}
		for b.Loop() {
			child := testutil.Spawn(b, testutil.Build(b, "loop"), "2", strconv.Itoa(readerPairs))
			child.Ready()
			tracer, err := Open(planFor(b, plan.Options{PID: child.PID, Depth: plan.DefaultDepth}))
			if err != nil {
				b.Fatal(err)
			}
			before := cpu(b)
			child.Go()
			events := read(tracer)
			s.add("ns/event", float64(cpu(b)-before)/float64(events))
			child.Succeed()
			if lost := tracer.Stats(); lost.LostEvents() > 0 || events < 4*readerPairs {
				b.Errorf("%d events, %d lost", events, lost.LostEvents())
			}
			if err := tracer.Close(); err != nil {
				b.Error(err)
			}
			s.add("rss-MB", peakRSS(b))
		}
		for name := range s {
			b.ReportMetric(s.median(name), name)
		}
	}
	b.Run("rings", func(b *testing.B) {
		run(b, func(t *Tracer) int {
			events := 0
			for batch := range t.collector.Batches() {
				events += len(batch.Events)
				t.collector.Reuse(batch)
			}
			return events
		})
	})
	b.Run("file", func(b *testing.B) {
		run(b, func(t *Tracer) int { return toFile(b, t) })
	})
}

// toFile writes a trace as the command does and returns the number of calls.
func toFile(b *testing.B, t *Tracer) int {
	f, err := os.Create(filepath.Join(b.TempDir(), "trace"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w, err := sprtrace.New(f, sprtrace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := trace.Copy(w, t); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	s := t.Stats()
	return int(s.Calls)
}

// BenchmarkAttach measures attaching and detaching all probes.
func BenchmarkAttach(b *testing.B) {
	testutil.NeedBPF(b)
	child := testutil.Spawn(b, testutil.Build(b, "loop"), "1")
	child.Ready()
	s := samples{}
	for b.Loop() {
		p := planFor(b, plan.Options{PID: child.PID})
		cpus, err := host.OnlineCPUs()
		if err != nil {
			b.Fatal(err)
		}
		k := &kernel{probes: probe.New(p)}
		if err := errors.Join(k.programs.Load(p, cpus), k.rings.open(p, &k.programs, cpus)); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := errors.Join(k.probes.Start(), k.attachProbes(p)); err != nil {
			b.Fatal(err)
		}
		s.add("attach-ms", float64(time.Since(start).Microseconds())/1000)
		start = time.Now()
		if err := k.probes.Detach(); err != nil {
			b.Fatal(err)
		}
		s.add("detach-ms", float64(time.Since(start).Microseconds())/1000)
		if err := errors.Join(k.Close(), p.Close()); err != nil {
			b.Error(err)
		}
	}
	for name := range s {
		b.ReportMetric(s.median(name), name)
	}
}
