package tracer

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// returnProbes attaches a program that does nothing to the returns of functions, as
// another tracer would.
func returnProbes(t *testing.T, pid int, path string, functions ...string) {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	executable, err := link.OpenExecutable(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range functions {
		l, err := executable.Uretprobe(function, program, &link.UprobeOptions{PID: pid})
		if err != nil {
			t.Fatalf("return probe on %s: %v", function, err)
		}
		t.Cleanup(func() { l.Close() })
	}
}

// While a return probe of another tracer is pending, the kernel has replaced a return
// address with its own. Stacks have the real one, which is known from a run of the same
// program without such probes, at the same addresses.
func TestStacksUnderForeignReturnProbes(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, underForeignReturnProbes)
}

func underForeignReturnProbes(t *testing.T, build testutil.Builder) {
	needSteps(t)
	program := build(t, "shadow", testutil.OmitFramePointers)
	spawn := func(t *testing.T) (child *testutil.Child, log string) {
		log = testutil.StackLogPath(t)
		child = testutil.Start(t, exec.Command("setarch", "-R", program, log, "500"))
		child.Ready()
		return child, log
	}
	child, log := spawn(t)
	child.Go()
	child.Succeed()
	truth := testutil.StackLog(t, log)
	for _, way := range []plan.Unwind{plan.UnwindEH, plan.UnwindAuto} {
		t.Run(way.String(), func(t *testing.T) {
			child, log := spawn(t)
			returnProbes(t, child.PID, program, "even", "odd", "run")
			r := attachTo(t, child.PID, byTables(way, nil))
			child.Go()
			run := ended(t, child, r, log)
			if len(run.log) != len(truth) {
				t.Fatalf("%d calls in this run, %d in the first", len(run.log), len(truth))
			}
			replaced := 0
			for i := range run.log {
				if !slices.Equal(run.log[i].Frames, truth[i].Frames) {
					replaced++
				}
				run.log[i].Frames = truth[i].Frames
			}
			if replaced == 0 {
				t.Error("the probes replaced no return address: nothing is tested")
			}
			run.allShadowed(false)
		})
	}
}

// needSteps skips a test of 32-bit programs without address randomization if the kernel
// would make them hang.
func needSteps(t *testing.T) {
	t.Helper()
	if err := (host.Kernel{}).NarrowSteps(); err != nil && strings.HasSuffix(t.Name(), "32-bit") {
		t.Skipf("SKIPPED-KERNEL: %v", err)
	}
}
