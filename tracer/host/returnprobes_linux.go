package host

import (
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// preflightAddress returns the address of preflightLeaf's code. The function's value in Go
// is a wrapper around it, which direct calls do not go through.
func preflightAddress() uintptr

// ErrReturnProbes is the error when return probes would kill the process.
var ErrReturnProbes = errors.New("return probes would kill it")

// SurvivesSeccomp tests whether a process under seccomp survives return probes. It puts
// one on a child whose seccomp filter kills on the stub's system call, and returns an
// error that wraps ErrReturnProbes if the child was killed.
func SurvivesSeccomp() error {
	child := exec.Command(ownProgram)
	child.Args = []string{childSeccomp}
	child.Env = []string{"GODEBUG=asyncpreemptoff=1"}
	in, err := child.StdinPipe()
	if err != nil {
		return fmt.Errorf("test return probes: %w", err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return fmt.Errorf("test return probes: %w", err)
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("test return probes: %w", err)
	}
	probeErr := probeChild(child.Process.Pid, in, out)
	_ = in.Close() // ends the child's read if it still waits
	waitErr := child.Wait()
	if probeErr != nil {
		return fmt.Errorf("test return probes: %w", probeErr)
	}
	if waitErr != nil {
		return fmt.Errorf("%w on this kernel: a child of ours under seccomp ended with %s", ErrReturnProbes, child.ProcessState)
	}
	return nil
}

// probeChild waits until the child is ready, puts a return probe on its preflightLeaf,
// lets it go on and waits for its end.
func probeChild(pid int, in io.Writer, out io.Reader) error {
	var ready [1]byte
	if _, err := io.ReadFull(out, ready[:]); err != nil {
		return fmt.Errorf("wait for the child: %w", err)
	}
	offset, err := ownFileOffset(preflightAddress())
	if err != nil {
		return err
	}
	hits, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return err
	}
	defer hits.Close()
	program, err := countingProgram(hits, ebpf.AttachNone)
	if err != nil {
		return err
	}
	defer program.Close()
	exe, err := link.OpenExecutable(ownProgram)
	if err != nil {
		return err
	}
	l, err := exe.Uretprobe("", program, &link.UprobeOptions{Address: offset, PID: pid})
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := in.Write([]byte{1}); err != nil {
		return err
	}
	// The end of the child's output is the end of the child.
	_, err = io.Copy(io.Discard, out)
	return err
}

// KnowsShadowStacks tests whether return probes work with shadow stacks, and returns an
// error that wraps ErrReturnProbes if not. They do since the kernel version in which the
// stub makes a system call. A child makes that call: on such a kernel SIGILL ends it,
// because only the stub may make the call.
func KnowsShadowStacks() error {
	child := exec.Command(ownProgram)
	child.Args = []string{childShadowStack}
	err := child.Run()
	if status, ok := child.ProcessState.Sys().(interface{ Signaled() bool }); ok && status.Signaled() {
		return nil
	}
	if child.ProcessState.ExitCode() == 2 { // the Go runtime's exit after a fatal signal
		return nil
	}
	if err != nil {
		return fmt.Errorf("test return probes: %w", err)
	}
	return fmt.Errorf("%w before Linux 6.11", ErrReturnProbes)
}
