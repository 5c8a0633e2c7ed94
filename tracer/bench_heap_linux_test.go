package tracer

import (
	"errors"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// BenchmarkHeapGrowth measures what it costs to record heap growth, as ratios of the CPU
// time per step: for a program that grows the heap at every fourth malloc, for one that
// does not grow it, and for one that maps memory itself. "in-mmap" is what probes in mmap
// itself, at its entry and return, would cost that last program.
func BenchmarkHeapGrowth(b *testing.B) {
	testutil.NeedBPF(b)
	const steps = 100_000
	grows := plan.Options{HeapGrowth: true}
	mapping := func(kind string, attach func(pid int) func()) float64 {
		child := testutil.Spawn(b, testutil.Build(b, "maploop"), kind, strconv.Itoa(steps))
		child.Ready()
		detach := attach(child.PID)
		child.Go()
		report := child.Report()
		detach()
		return report.NsPerPair
	}
	b.Run("grows", func(b *testing.B) {
		s := samples{}
		for b.Loop() {
			base := mapping("arena", traced(b, plan.Options{}))
			s.add("traced-ns/malloc", base)
			s.add("ratio", mapping("arena", traced(b, grows))/base)
		}
		s.report(b)
	})
	b.Run("stays", func(b *testing.B) {
		s := samples{}
		for b.Loop() {
			base := nsPerPair(b, 1, traced(b, plan.Options{}))
			s.add("traced-ns/pair", base)
			s.add("ratio", nsPerPair(b, 1, traced(b, grows))/base)
		}
		s.report(b)
	})
	b.Run("own", func(b *testing.B) {
		s := samples{}
		for b.Loop() {
			base := mapping("own", untraced)
			s.add("untraced-ns/pair", base)
			s.add("ratio", mapping("own", traced(b, grows))/base)
			s.add("in-mmap", mapping("own", inFunction(b, "mmap"))/base)
		}
		s.report(b)
	})
}

func (s samples) report(b *testing.B) {
	for name := range s {
		b.ReportMetric(s.median(name), name)
	}
}

// inFunction attaches programs that do nothing to the entry and the return of a function
// of the C library.
func inFunction(b *testing.B, name string) func(pid int) func() {
	return func(pid int) func() {
		p := planFor(b, plan.Options{PID: pid})
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual BSD/GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		})
		if err != nil {
			b.Fatal(err)
		}
		lib, err := link.OpenExecutable(p.Memory.Functions[0].Probe.File)
		if err != nil {
			b.Fatal(err)
		}
		o := &link.UprobeMultiOptions{PID: uint32(pid)}
		entry, err := lib.UprobeMulti([]string{name}, program, o)
		if err != nil {
			b.Fatal(err)
		}
		ret, err := lib.UretprobeMulti([]string{name}, program, o)
		if err != nil {
			b.Fatal(err)
		}
		return func() {
			if err := errors.Join(entry.Close(), ret.Close(), program.Close(), p.Close()); err != nil {
				b.Error(err)
			}
		}
	}
}
