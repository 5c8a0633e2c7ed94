package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"rtrace-bpf/vmtest/guest"
)

// lastLines is how much of the console is shown when a machine stops too early.
const lastLines = 25

// ErrNoStart says that no job had started on a machine that stopped too early:
// another one may be tried. Such an error is ErrNoEnd as well.
var ErrNoStart = errors.New("the first test was not reached")

// Boot runs a machine as Follow does. If it stops before any job has started, it
// is booted again, up to limits.Tries times in all, and log says so: an emulator
// may fail, a test that has begun may not be tried again.
func Boot(ctx context.Context, cmd func(context.Context) (*exec.Cmd, error), token string, limits Limits, log io.Writer, handle func(guest.Event) error) error {
	for try := 1; ; try++ {
		var last []string
		started, err := Follow(ctx, cmd, token, limits, func(e guest.Event) error {
			if e.Kind == guest.Console || e.Kind == guest.Output {
				last = append(last, strings.TrimRight(e.Text, "\n"))
				last = last[max(0, len(last)-lastLines):]
			}
			return handle(e)
		})
		if !errors.Is(err, ErrNoEnd) {
			return err
		}
		fmt.Fprintf(log, "the last the machine said:\n")
		for _, line := range last {
			fmt.Fprintf(log, "| %s\n", line)
		}
		if started || ctx.Err() != nil {
			return err
		}
		if try >= limits.Tries {
			return fmt.Errorf("%w, %w", err, ErrNoStart)
		}
		fmt.Fprintf(log, "BOOTING ONCE MORE, before any test had started: %v\n", err)
	}
}

// KVMLimit bounds the trial boot. A usable KVM needs a second.
const KVMLimit = 15 * time.Second

// KVMWorks tells whether hardware virtualisation boots a machine: that of spec,
// whose plan must have no jobs. That the device is there, and even that it makes
// a virtual CPU, does not say that it can run a kernel.
func KVMWorks(ctx context.Context, spec Spec, token string) error {
	flags, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err
	}
	if spec.Arch == "amd64" && !strings.Contains(string(flags), " vmx ") && !strings.Contains(string(flags), " svm ") {
		return errors.New("the CPU offers no hardware virtualisation")
	}
	device, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	device.Close()
	spec.KVM = true
	_, err = Follow(ctx, spec.Command, token, Limits{Boot: KVMLimit, All: KVMLimit}, func(guest.Event) error { return nil })
	return err
}
