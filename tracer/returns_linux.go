package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// preflightLeaf does nothing. It is assembly so that its return address may be
// replaced without the Go runtime ever seeing it.
func preflightLeaf()

// preflightAddress returns where the code of preflightLeaf is. The value of the function
// is a wrapper around it, which calls of it go past.
func preflightAddress() uintptr

// ErrReturnProbes says that return probes would harm the process.
var ErrReturnProbes = errors.New("return probes would kill it")

// A return probe makes the function return through a stub of the kernel's.
// Since Linux 6.11 that stub makes a system call (number 335 on x86-64), which
// a seccomp filter may take for the program's own, until a later fix exempted
// it; and only since 6.11 does it go together with shadow stacks. 32-bit programs
// return through a trap, as all did before, and have no shadow stacks.
const sysUretprobe = 335

// checkReturnProbes says whether return probes are safe in the process.
func checkReturnProbes(t *target) error {
	if t.machine.trap {
		return nil
	}
	pid := t.pid
	status, err := proc.ReadStatus(pid)
	if err != nil {
		return processError(pid, err)
	}
	if status.Seccomp > proc.SeccompDisabled {
		if err := survivesSeccomp(); err != nil {
			return fmt.Errorf("process %d runs under seccomp: %w", pid, err)
		}
	}
	if status.ShadowStack() {
		if err := knowsShadowStacks(); err != nil {
			return fmt.Errorf("process %d has a shadow stack: %w", pid, err)
		}
	}
	return nil
}

// survivesSeccomp puts a return probe into a child whose seccomp filter kills
// on the stub's system call, and looks whether the child lives.
func survivesSeccomp() error {
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

// knowsShadowStacks asks whether the stub makes a system call, as it does
// since the kernel version that made return probes work with shadow stacks:
// made by anybody else the call ends the caller with SIGILL.
func knowsShadowStacks() error {
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

// makeForbiddenCall waits to be probed, and returns through the stub where its system
// call kills.
func makeForbiddenCall() {
	if err := forbid(sysUretprobe); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var b [1]byte
	_, _ = os.Stdout.Write(b[:])
	_, _ = os.Stdin.Read(b[:])
	preflightLeaf()
}

// makeStubsCall makes the stub's system call without being the stub.
func makeStubsCall() { _, _, _ = unix.RawSyscall(sysUretprobe, 0, 0, 0) }

// forbid installs a seccomp filter that kills the process at one system call.
func forbid(call uint32) error {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		ifSame = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // seccomp_data.nr
		{Code: ifSame, K: call, Jt: 0, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("install seccomp filter: %w", err)
	}
	return nil
}
