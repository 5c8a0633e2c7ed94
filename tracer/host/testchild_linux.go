package host

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/arrival"
	"rtrace-bpf/tracer/keeper"
)

// ownProgram is the program that this process runs. The tracer's children run it again;
// their argv[0] selects what they do.
const ownProgram = "/proc/self/exe"

// Names (argv[0]) of children that test the kernel.
const (
	childSeccomp     = "rtrace-bpf-preflight-seccomp"
	childShadowStack = "rtrace-bpf-preflight-shadow-stack"
	childCosts       = "rtrace-bpf-preflight-costs"
)

// RunAsChild returns at once, unless this process is a child that the tracer has started.
// Then it does the child's work and exits. The main function of every program that uses
// this package calls it first.
func RunAsChild() {
	var work func()
	switch os.Args[0] {
	case childSeccomp:
		work = makeForbiddenCall
	case childShadowStack:
		work = makeStubsCall
	case childCosts:
		work = measureOwnCosts
	case keeper.Name:
		work = keeper.Run
	case arrival.Name:
		work = arrival.Run
	default:
		return
	}
	runtime.LockOSThread()
	work()
	os.Exit(0)
}

// measureOwnCosts is the work of MeasureCosts's child: it prints the costs in nanoseconds.
func measureOwnCosts() {
	debug.SetGCPercent(-1) // no variable holds the probes, and a collected one is removed
	m := MechanismPerf
	if len(os.Args) > 1 && os.Args[1] == MechanismMulti.String() {
		m = MechanismMulti
	}
	costs, err := ownCosts(m)
	if err == nil {
		_, err = fmt.Println(int64(costs.Entry), int64(costs.Return))
	}
	if err != nil {
		fmt.Fprint(os.Stderr, err, ": ")
		os.Exit(1)
	}
}

// preflightLeaf does nothing. It is in assembly, so that a return probe can replace its
// return address without the Go runtime ever seeing it.
func preflightLeaf()

// sysUretprobe is the system call of the stub through which functions with a return probe
// return, on x86-64 since Linux 6.11. A seccomp filter could kill the process for it,
// until a later fix exempted the call. Only since 6.11 do return probes work with shadow
// stacks. 32-bit programs still return through a trap, as all programs did before, and
// have no shadow stacks.
const sysUretprobe = 335

// makeForbiddenCall is the work of SurvivesSeccomp's child. It installs a filter that kills
// on the stub's system call, waits for the probe, and calls the probed function.
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

// makeStubsCall is the work of KnowsShadowStacks's child: it makes the stub's system call.
func makeStubsCall() { _, _, _ = unix.RawSyscall(sysUretprobe, 0, 0, 0) }

// forbid installs a seccomp filter that kills this process at one system call.
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
