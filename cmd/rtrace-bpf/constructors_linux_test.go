package main

import (
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// The traces contain what constructors of the program and of its libraries allocate, with
// whole stacks, however the program is linked and the probes are attached.
func TestLaunchConstructors(t *testing.T) {
	testutil.NeedBPF(t)
	library := func(flags ...string) []string {
		path := testutil.Build(t, "launch", slices.Concat([]string{"-DLIBRARY", "-shared", "-fPIC"}, flags)...)
		return slices.Concat([]string{"-DNEEDS_LIBRARY", path}, flags)
	}
	for name, test := range map[string]struct {
		flags []string
		calls int // at least
		libcs int // at most
	}{
		"library":      {flags: library(), calls: 15},
		"fixed":        {flags: slices.Concat(library(), []string{"-no-pie", "-fno-pie"}), calls: 15},
		"static":       {flags: []string{"-static"}, calls: 9, libcs: mostOfLibc},
		"static-pie":   {flags: []string{"-static-pie"}, calls: 9, libcs: mostOfLibc},
		"musl library": {flags: library(testutil.Musl), calls: 15},
		"musl static":  {flags: []string{testutil.Musl, "-static"}, calls: 9},
	} {
		t.Run(name, func(t *testing.T) {
			constructors(t, testutil.Build(t, "launch", test.flags...), test.calls, test.libcs, !slices.Contains(test.flags, testutil.Musl))
		})
	}
	if !testutil.Has32Bit() {
		return
	}
	t.Run("32-bit", func(t *testing.T) {
		testutil.Need32Bit(t)
		t.Run("library", func(t *testing.T) { constructors(t, testutil.Build(t, "launch", library("-m32")...), 15, 0, true) })
		t.Run("static", func(t *testing.T) { constructors(t, testutil.Build32(t, "launch", "-static"), 9, mostOfLibc, true) })
	})
}

// constructors traces a program. whole means that its C library has call frame information.
func constructors(t *testing.T, program string, atLeast, libcs int, whole bool) {
	for name, flags := range map[string][]string{"auto": nil, "old kernel": oldKernel} {
		t.Run(name, func(t *testing.T) {
			l := launchCommand(t, flags, program)
			l.ends(0)
			l.says("lost: 0")
			report := l.Report()
			if len(report.Done()) < atLeast {
				t.Errorf("only %d calls made", len(report.Done()))
			}
			records := l.records()
			equalCalls(t, records, report, libcs)
			for _, rec := range records {
				if whole && rec.Kind == trace.KindCall && rec.Call.Op != trace.OpFree && rec.Call.Stack.End != trace.StackComplete {
					t.Errorf("the stack of %s(%d) is %v (%s): %#x", rec.Call.Function, rec.Call.Size, rec.Call.Stack.End, rec.Call.Stack.Reason, rec.Call.Stack.Frames)
				}
			}
		})
	}
}
