package tracer

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/probe"
)

// pathPairs are the pairs of malloc and free per thread and run of BenchmarkPaths.
const pathPairs = 50_000

// BenchmarkPaths compares what tracing costs the traced process by entry and return, and by
// sites inside malloc, with what empty programs cost at the same sites: F and G.
func BenchmarkPaths(b *testing.B) {
	testutil.NeedBPF(b)
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			s := samples{}
			for b.Loop() {
				base := pathPair(b, threads, untraced)
				cost := func(attach func(pid int) func()) float64 { return pathPair(b, threads, attach) - base }
				floor := cost(empty(b))
				s.add("F-ns/pair", floor)
				s.add("G/F", cost(emptyInside(b))/floor)
				for _, v := range []struct {
					name  string
					depth int
				}{{"events", 0}, {"stacks", plan.DefaultDepth}} {
					returns := cost(traced(b, plan.Options{Depth: v.depth}))
					paths := cost(traced(b, plan.Options{Depth: v.depth, Ways: plan.WaysPaths}))
					s.add("returns-"+v.name+"/F", returns/floor)
					s.add("paths-"+v.name+"/F", paths/floor)
					s.add("returns/paths-"+v.name, returns/paths)
				}
			}
			for name := range s {
				b.ReportMetric(s.median(name), name)
			}
		})
	}
}

// pathPair is nsPerPair with fewer pairs and 20 more frames on the stack.
func pathPair(b *testing.B, threads int, attach func(pid int) (detach func())) float64 {
	b.Helper()
	child := testutil.Spawn(b, testutil.Build(b, "loop"), strconv.Itoa(threads), strconv.Itoa(pathPairs), "32", "20")
	child.Ready()
	detach := attach(child.PID)
	child.Go()
	report := child.Report()
	detach()
	return report.NsPerPair
}

// emptyInside attaches programs that do nothing to the sites inside functions, and to the
// entries and returns of the others.
func emptyInside(b *testing.B) func(pid int) func() {
	return func(pid int) func() {
		p := planFor(b, plan.Options{PID: pid, Ways: plan.WaysPaths})
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
		placements := []plan.Placement{
			{Program: program, Probes: p.Layout.Returns, Ret: true},
			{Program: program, Probes: p.Layout.Inside},
			{Program: program, Probes: p.Layout.Entries},
		}
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
