package process

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/hosttest"
)

// A 32-bit program with its stack at the very top is refused if the kernel finds no place
// for the page in which it single-steps. Other programs are traced on either kernel.
func TestStackAtTheTop(t *testing.T) {
	testutil.NeedBPF(t)
	if !testutil.Has32Bit() {
		t.Skip("SKIPPED: not on x86-64")
	}
	narrow, wide := testutil.Build32(t, "alloc"), testutil.Build(t, "alloc")
	lacks := hosttest.Features{"NarrowSteps": fmt.Errorf("it: %w: it needs Linux 7.0", host.ErrUnsupported)}
	for name, test := range map[string]struct {
		argv    []string
		refused bool // on a kernel without NarrowSteps
	}{
		"32-bit":        {[]string{"setarch", "-R", narrow, "1", "1"}, true},
		"32-bit, 3 GiB": {[]string{"setarch", "-R", "-3", narrow, "1", "1"}, true},
		"64-bit":        {[]string{"setarch", "-R", wide, "1", "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if test.refused {
				testutil.Need32Bit(t)
			}
			child := testutil.Start(t, exec.Command(test.argv[0], test.argv[1:]...))
			child.Ready()
			for _, features := range []host.Features{host.Kernel{}, lacks} {
				x, err := Open(child.PID, features)
				refused := test.refused && features.NarrowSteps() != nil
				if (err != nil) != refused || refused && (!errors.Is(err, host.ErrMachine) || !strings.Contains(err.Error(), "its stack is at the very top")) {
					t.Errorf("%v, want refused: %v", err, refused)
				}
				if err == nil {
					if err := x.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			child.Go()
			child.Succeed()
		})
	}
}
