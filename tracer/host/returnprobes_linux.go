package host

import (
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// preflightAddress returns where the code of preflightLeaf is. The value of the function
// is a wrapper around it, which calls of it go past.
func preflightAddress() uintptr

// ErrReturnProbes says that return probes would harm the process.
var ErrReturnProbes = errors.New("return probes would kill it")

// SurvivesSeccomp puts a return probe into a child whose seccomp filter kills
// on the stub's system call, and looks whether the child lives.
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
	_ = in.Close() // the child ends at the latest now
	waitErr := child.Wait()
	if probeErr != nil {
		return fmt.Errorf("test return probes: %w", probeErr)
	}
	if waitErr != nil {
		return fmt.Errorf("%w on this kernel: a child of ours under seccomp ended with %s", ErrReturnProbes, child.ProcessState)
	}
	return nil
}

// probeChild waits for the child, probes its leaf function and lets it go on.
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

// KnowsShadowStacks asks whether the stub makes a system call, as it does
// since the kernel version that made return probes work with shadow stacks:
// made by anybody else the call ends the caller with SIGILL.
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
