package tracer

import (
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/plan"
)

func selectModules(b *testing.B, names ...string) []*modules.Module {
	b.Helper()
	all, err := modules.Select(names)
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// BenchmarkModulesBeside measures what a program pays for resource modules whose
// functions it does not call, as a multiple of the cost of memory alone, and for the
// arguments of allocators. same is memory alone once more, to show the variation.
func BenchmarkModulesBeside(b *testing.B) {
	testutil.NeedBPF(b)
	memory := plan.Options{Depth: plan.DefaultDepth, RingSize: 64 << 20}
	beside, args := memory, memory
	beside.Modules = selectModules(b, "file", "shmposix", "shmsysv", "mmap", "thread")
	args.Args = true
	all := samples{}
	for b.Loop() {
		all.add("plain", nsPerPair(b, 1, untraced))
		all.add("memory", nsPerPair(b, 1, traced(b, memory)))
		all.add("modules", nsPerPair(b, 1, traced(b, beside)))
		all.add("args", nsPerPair(b, 1, traced(b, args)))
		all.add("same", nsPerPair(b, 1, traced(b, memory)))
	}
	plain := all.median("plain")
	cost := all.median("memory") - plain
	b.ReportMetric(plain, "plain-ns/pair")
	b.ReportMetric(cost, "memory-ns/pair")
	for _, name := range []string{"same", "modules", "args"} {
		b.ReportMetric((all.median(name)-plain)/cost, name+"-x")
	}
}

// BenchmarkModules measures the cost of a call that a resource module records, with its
// stack.
func BenchmarkModules(b *testing.B) {
	testutil.NeedBPF(b)
	for module, x := range map[string]struct {
		work  string
		n     int
		calls float64 // per operation
	}{
		"lock":        {"locks", 300_000, 2},
		"memtransfer": {"copies", 500_000, 1},
		"file":        {"opens", 200_000, 2},
	} {
		b.Run(module, func(b *testing.B) {
			options := plan.Options{Depth: plan.DefaultDepth, RingSize: 64 << 20, NoMemory: true, Modules: selectModules(b, module)}
			all := samples{}
			for b.Loop() {
				all.add("plain", nsPerOp(b, x.work, x.n, untraced))
				all.add("traced", nsPerOp(b, x.work, x.n, traced(b, options)))
			}
			plain := all.median("plain")
			b.ReportMetric(plain/x.calls, "plain-ns/call")
			b.ReportMetric((all.median("traced")-plain)/x.calls, "module-ns/call")
		})
	}
}
