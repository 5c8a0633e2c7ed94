// Package machine boots virtual machines and follows their output.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"

	"rtrace-bpf/vmtest/guest"
)

// Spec is a machine to boot.
type Spec struct {
	Arch   string // Debian's name: amd64, arm64
	Kernel string // the file to boot
	Initrd string // the first root file system, which contains init
	Memory string // in QEMU's form: 2G
	CPUs   int
	KVM    bool   // hardware virtualisation; see KVMWorks
	Append string // more words for the kernel's command line
}

// emulation selects QEMU's emulation. Kernels that patch their code while other CPUs run it
// have crashed when QEMU 7.2 emulated each CPU in a thread of its own.
const emulation = "tcg,thread=single"

// Command returns the command that runs a machine in QEMU, with its console on the standard
// streams.
func (s *Spec) Command(ctx context.Context) (*exec.Cmd, error) {
	var program, console string
	var args []string
	switch s.Arch {
	case "amd64":
		program, console = "qemu-system-x86_64", "ttyS0"
		args = []string{"-M", "q35", "-cpu", "max", "-vga", "none"}
	case "arm64":
		program, console = "qemu-system-aarch64", "ttyAMA0"
		// QEMU takes much longer for the architecture's standard algorithm to sign pointers.
		args = []string{"-M", "virt", "-cpu", "max,pauth-impdef=on"}
	default:
		return nil, fmt.Errorf("architecture %q: want amd64 or arm64", s.Arch)
	}
	if s.KVM {
		args = append(args, "-enable-kvm", "-cpu", "host")
	} else {
		args = append(args, "-accel", emulation)
	}
	args = append(
		args, "-smp", strconv.Itoa(s.CPUs), "-m", s.Memory,
		"-nodefaults", "-display", "none", "-nic", "none", "-no-reboot", "-serial", "stdio",
		"-kernel", s.Kernel, "-initrd", s.Initrd,
		"-append", "console="+console+" quiet panic=-1 "+s.Append,
	)
	return exec.CommandContext(ctx, program, args...), nil
}

// ErrNoEnd reports that a machine stopped, or was stopped, before it had reported how all jobs
// ended.
var ErrNoEnd = errors.New("the machine stopped before it reported how all jobs ended")

// Limits are time limits for a machine.
type Limits struct {
	Boot  time.Duration // until the first job starts
	All   time.Duration
	Tries int // the most tries of Boot for a machine in which no job starts
}

// Follow runs a machine and passes each event to handle. started reports whether the first job
// had started; another try is useful only if not.
func Follow(ctx context.Context, cmd func(context.Context) (*exec.Cmd, error), token string, limits Limits, handle func(guest.Event) error) (started bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	all := time.AfterFunc(limits.All, func() { stop(fmt.Errorf("it was stopped after %v", limits.All)) })
	defer all.Stop()
	boot := time.AfterFunc(limits.Boot, func() { stop(fmt.Errorf("no job had started after %v", limits.Boot)) })
	defer boot.Stop()

	c, err := cmd(ctx)
	if err != nil {
		return false, err
	}
	asGroup(c)
	// Use a pipe, because QEMU overwrites the start of a regular file.
	out, in := io.Pipe()
	c.Stdout, c.Stderr = in, in
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		if cause := context.Cause(ctx); cause != nil { // the time had expired before
			return false, fmt.Errorf("%w: %w", ErrNoEnd, cause)
		}
		return false, fmt.Errorf("start the machine: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		err := c.Wait()
		_ = endGroup(c) // for example a QEMU whose virtme-ng has crashed
		_ = in.Close()  // never fails
		ended <- err
	}()
	over := false
	r := guest.NewReader(out, token)
	for err == nil {
		var e guest.Event
		if e, err = r.Next(); err != nil {
			break
		}
		switch e.Kind {
		case guest.Start:
			started = true
			boot.Stop()
		case guest.Over:
			over = true
		}
		err = handle(e)
	}
	if err != io.EOF {
		stop(err)
		out.CloseWithError(err)
		<-ended //nolint:errcheck // it was killed
		return started, err
	}
	status := <-ended
	if over {
		return started, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return started, fmt.Errorf("%w: %w", ErrNoEnd, cause)
	}
	if status != nil {
		return started, fmt.Errorf("%w: %s: %w", ErrNoEnd, c.Args[0], status)
	}
	return started, ErrNoEnd
}
