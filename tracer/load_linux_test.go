package tracer

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/programs"
)

// Each program passes the kernel's verifier in each form that this kernel can need. The
// test logs the numbers of instructions that the verifier processed.
func TestProgramsLoad(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, programsLoad)
}

func programsLoad(t *testing.T, build testutil.Builder) {
	child := testutil.Spawn(t, build(t, "alloc"), "1", "1")
	child.Ready()
	forms := map[string]func(o *plan.Options){
		"best":          func(*plan.Options) {},
		"oldest":        oldest,
		"bounded":       func(o *plan.Options) { o.Bounded = true },
		"hash":          func(o *plan.Options) { o.State = plan.StateHash },
		"address":       func(o *plan.Options) { o.Sites = plan.SitesAddress },
		"perf-buffer":   func(o *plan.Options) { o.Buffer = plan.BufferPerf },
		"no-stacks":     func(o *plan.Options) { o.Depth = 0 },
		"helper":        func(o *plan.Options) { o.Unwind = plan.UnwindHelper },
		"fp":            func(o *plan.Options) { o.Unwind = plan.UnwindFP },
		"eh":            func(o *plan.Options) { o.Unwind = plan.UnwindEH },
		"checked":       func(o *plan.Options) { o.VerifyUnwind = 1 },
		"all-stacks":    func(o *plan.Options) { o.BacktraceAll = true },
		"oldest-check":  func(o *plan.Options) { oldest(o); o.BacktraceAll, o.VerifyUnwind = true, 1 },
		"paths":         func(o *plan.Options) { o.Ways = plan.WaysPaths },
		"oldest-paths":  func(o *plan.Options) { oldest(o); o.Ways = plan.WaysPaths },
		"faults":        growth,
		"oldest-faults": func(o *plan.Options) { growth(o); oldest(o); o.Buffer = plan.BufferRing },
		"fault-events":  func(o *plan.Options) { growth(o); o.Testing.FaultEvents = true },
		"oldest-events": func(o *plan.Options) {
			growth(o)
			oldest(o)
			o.Buffer, o.Testing.FaultEvents = plan.BufferRing, true
		},
	}
	for name, change := range forms {
		t.Run(name, func(t *testing.T) {
			o := plan.Options{PID: child.PID, Depth: plan.DefaultDepth, HeapGrowth: true, Testing: plan.TestOptions{VerifierLog: ebpf.LogLevelStats, EveryProgram: true}}
			change(&o)
			needFaultEvents(t, &o)
			p, err := plan.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			var loaded programs.Programs
			defer loaded.Close()
			if err := loaded.Load(p, []int{0}); err != nil {
				t.Fatal(err, lastOf(err))
			}
			all := &loaded.ProbePrograms
			for _, x := range []struct {
				name    string
				program *ebpf.Program
			}{
				{"enter", all.Enter},
				{"leave", all.Leave},
				{"pass", all.Pass},
				{"expect", all.Expect},
				{"compare", all.Compare},
				{"operate", all.Operate},
				{"leave_at", all.LeaveAt},
				{"hand_over", all.HandOver},
				{"grow", all.Grow},
				{"grown", all.Grown},
				{"internal_free", all.InternalFree},
				{"maps_changed", all.MapsChanged},
				{"user_fault", all.UserFault},
				{"kernel_fault", all.KernelFault},
				{"counted_fault", all.CountedFault},
				{"area_found", all.AreaFound},
			} {
				n := verified.FindStringSubmatch(x.program.VerifierLog)
				if n == nil {
					t.Fatalf("%s: the verifier printed %q", x.name, x.program.VerifierLog)
				}
				t.Logf("%s: %s instructions verified", x.name, n[1])
				keepsKernelStack(t, x.name, x.program)
			}
		})
	}
}

// The objects for kernels without bpf_loop and for 32-bit programs have the same maps and
// settings, so that programs of one can use what was made for another.
func TestObjectsAreAlike(t *testing.T) {
	first, err := object.LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	for i := range process.Machines {
		for name, load := range map[string]func() (*ebpf.CollectionSpec, error){"whole": process.Machines[i].Whole, "bounded": process.Machines[i].Bounded} {
			spec, err := load()
			if err != nil {
				t.Fatal(err)
			}
			name = process.Machines[i].ELF.String() + " " + name
			for key, want := range first.Maps {
				got := spec.Maps[key]
				if got == nil {
					t.Errorf("%s has no map %s", name, key)
					continue
				}
				if strings.HasPrefix(key, ".rodata") {
					continue // strings and settings, which each object has for itself
				}
				if got.Type != want.Type || got.KeySize != want.KeySize || got.ValueSize != want.ValueSize || got.Flags != want.Flags {
					t.Errorf("%s: map %s is %v, want %v", name, key, got, want)
				}
			}
			for key, want := range first.Variables {
				if got := spec.Variables[key]; got == nil || got.Size() != want.Size() {
					t.Errorf("%s: variable %s is not like the first object's", name, key)
				}
			}
			for key := range first.Programs {
				if spec.Programs[key] == nil {
					t.Errorf("%s has no program %s", name, key)
				}
			}
		}
	}
}

// keepsKernelStack fails the test if the kernel gave the program a stack per CPU, which
// is overwritten when the program is preempted (bpf/kernel_stack.h).
func keepsKernelStack(t *testing.T, name string, p *ebpf.Program) {
	t.Helper()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	code, ok := info.JitedInsns()
	if !ok {
		t.Logf("%s: the kernel does not show the compiled code", name)
		return
	}
	// The only code that the kernel's compiler for x86 makes for a per-CPU variable and
	// r9: "add %gs:OFFSET, %r9".
	if runtime.GOARCH == "amd64" && bytes.Contains(code, []byte{0x65, 0x4c, 0x03, 0x0c, 0x25}) {
		t.Errorf("%s has a stack per CPU", name)
	}
}

// verified matches the number of instructions that the verifiers of all kernels print.
var verified = regexp.MustCompile(`processed (\d+) insns`)

// lastOf returns the end of the verifier's log.
func lastOf(err error) string {
	var v *ebpf.VerifierError
	if !errors.As(err, &v) {
		return ""
	}
	lines := slices.Clone(v.Log)
	if len(lines) > 60 {
		lines = lines[len(lines)-60:]
	}
	return fmt.Sprintf("\n%s", strings.Join(lines, "\n"))
}
