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

// ownProgram is the program that runs: the tracer's children are that again, told by
// their name what to do.
const ownProgram = "/proc/self/exe"

const (
	childSeccomp     = "rtrace-bpf-preflight-seccomp"
	childShadowStack = "rtrace-bpf-preflight-shadow-stack"
	childCosts       = "rtrace-bpf-preflight-costs"
)

// RunAsChild does what the process was started for, and ends it, if it is a child
// that the tracer has started. The main function of every program that uses this
// package calls it first.
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

// measureOwnCosts is what the child of MeasureCosts does.
func measureOwnCosts() {
	debug.SetGCPercent(-1) // nobody holds the probes, which would end with their values
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

// preflightLeaf does nothing. It is assembly so that its return address may be
// replaced without the Go runtime ever seeing it.
func preflightLeaf()

// A return probe makes the function return through a stub of the kernel's.
// Since Linux 6.11 that stub makes a system call (number 335 on x86-64), which
// a seccomp filter may take for the program's own, until a later fix exempted
// it; and only since 6.11 does it go together with shadow stacks. 32-bit programs
// return through a trap, as all did before, and have no shadow stacks.
const sysUretprobe = 335

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
