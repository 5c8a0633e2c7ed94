package tracer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/testutil"
)

// Each program passes the kernel's verifier in each form that this kernel can
// need; the numbers of instructions that the verifier looked at are printed.
func TestProgramsLoad(t *testing.T) {
	privileged(t)
	child := testutil.Spawn(t, testutil.Build(t, "alloc"), "1", "1")
	child.Ready()
	forms := map[string]func(o *Options){
		"best":         func(*Options) {},
		"oldest":       oldest,
		"bounded":      func(o *Options) { o.Bounded = true },
		"hash":         func(o *Options) { o.State = StateHash },
		"address":      func(o *Options) { o.Sites = SitesAddress },
		"perf-buffer":  func(o *Options) { o.Buffer = BufferPerf },
		"no-stacks":    func(o *Options) { o.Depth = 0 },
		"helper":       func(o *Options) { o.Unwind = UnwindHelper },
		"fp":           func(o *Options) { o.Unwind = UnwindFP },
		"eh":           func(o *Options) { o.Unwind = UnwindEH },
		"checked":      func(o *Options) { o.VerifyUnwind = 1 },
		"all-stacks":   func(o *Options) { o.BacktraceAll = true },
		"oldest-check": func(o *Options) { oldest(o); o.BacktraceAll, o.VerifyUnwind = true, 1 },
	}
	for name, change := range forms {
		t.Run(name, func(t *testing.T) {
			o := Options{PID: child.PID, Depth: DefaultDepth, HeapGrowth: true}
			change(&o)
			plan, err := NewPlan(o)
			if err != nil {
				t.Fatal(err)
			}
			defer plan.Close()
			k := &kernel{}
			defer k.Close()
			if err := k.load(plan, []int{0}); err != nil {
				t.Fatal(err, lastOf(err))
			}
			p := &k.objects.probePrograms
			for _, program := range []*ebpf.Program{p.Enter, p.Leave, p.Grow, p.Grown, p.InternalFree, p.MapsChanged} {
				info, err := program.Info()
				if err != nil {
					t.Fatal(err)
				}
				// Kernels before 5.16 do not say it.
				n, known := info.VerifiedInstructions()
				t.Logf("%s: %d instructions verified (known: %v)", info.Name, n, known)
			}
		})
	}
}

// lastOf returns the end of what the verifier said.
func lastOf(err error) string {
	var v *ebpf.VerifierError
	if !errors.As(err, &v) {
		return ""
	}
	lines := slices.Clone(v.Log)
	if len(lines) > 420 {
		lines = lines[len(lines)-420:]
	}
	return fmt.Sprintf("\n%s", strings.Join(lines, "\n"))
}
