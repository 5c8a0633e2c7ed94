package testutil

import "testing"

// The programs that log their stacks, run without a tracer: each stack of the log reaches the
// start of the thread or the context.
func TestStackPrograms(t *testing.T) {
	plug := func(t *testing.T) string { return Build(t, "plugs", "-shared", "-fPIC") }
	tests := map[string]struct {
		program string
		flags   []string
		args    func(t *testing.T) []string
		ends    int // different outermost frames: _start, clone, a context of its own
	}{
		"stacks":   {program: "stacks", args: arguments("3", "2"), ends: 3},
		"direct":   {program: "stacks", flags: []string{"-DSTACKLOG_DIRECT"}, args: arguments("3", "2"), ends: 3},
		"stepper":  {program: "stacks", flags: []string{"-DSTEP_BY_PTRACE"}, args: arguments("3", "2"), ends: 3},
		"deep":     {program: "stacks", args: arguments("deep", "700"), ends: 1},
		"cxx":      {program: "stacks_cxx", args: arguments("3", "2"), ends: 2},
		"shadow":   {program: "shadow", args: arguments("30"), ends: 2},
		"no plug":  {program: "stacks_late", args: arguments("0"), ends: 1},
		"plug":     {program: "stacks_late", args: func(t *testing.T) []string { return []string{"5", plug(t)} }, ends: 2},
		"storm":    {program: "storm", args: arguments("3", "4"), ends: 1},
		"no frame": {program: "stacks", flags: []string{"-fomit-frame-pointer"}, args: arguments("3", "2"), ends: 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := StackLogPath(t)
			c := Spawn(t, Build(t, test.program, test.flags...), append([]string{path}, test.args(t)...)...)
			c.Ready()
			c.Go()
			if test.program == "stacks_late" {
				c.Go()
			}
			c.Succeed()
			ends := map[uint64]bool{}
			for _, call := range StackLog(t, path) {
				ends[call.Frames[len(call.Frames)-1]] = true
			}
			if len(ends) != test.ends {
				t.Errorf("stacks end in %d places, want %d", len(ends), test.ends)
			}
		})
	}
}

func arguments(args ...string) func(*testing.T) []string {
	return func(*testing.T) []string { return args }
}
