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

// lastLines is how many lines of the console are shown when a machine stops too early.
const lastLines = 25

// ErrNoStart reports that no job had started on a machine that stopped too early, so another
// machine may be tried. Such an error is also an ErrNoEnd.
var ErrNoStart = errors.New("the first test was not reached")

// Boot runs a machine like Follow. If it stops before any job has started, Boot logs that and
// boots it again, up to limits.Tries times in all: an emulator may fail, but a test that has
// started must not be repeated.
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
		fmt.Fprintf(log, "the last lines of the console:\n")
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

// KVMWorks returns an error if hardware virtualisation cannot boot the machine of spec, whose
// plan must have no jobs. The device may exist, and may even make a virtual CPU, although it
// cannot run a kernel.
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
