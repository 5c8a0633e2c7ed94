package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// Features tells what the running kernel offers and what this process may do.
// Each method returns nil, an error that wraps ErrUnsupported, or what went
// wrong while asking.
type Features interface {
	Capabilities() error // of this process, for tracing others
	Types() error        // the kernel's description of its own types
	KernelReads() error  // programs may read the kernel's memory: it is not locked down
	RingBuffer() error   // BPF ring buffers, 5.8
	AttachCookie() error // bpf_get_attach_cookie, 5.15
	TaskStorage() error  // in uprobe programs, 5.16
	Loop() error         // bpf_loop, 5.17
	UprobeMulti() error  // uprobe_multi links whose process filter sees all threads, 6.10
	PerfUprobes() error  // uprobes as perf events, 4.17
	NarrowSteps() error  // 32-bit programs can be single-stepped wherever their stack is, 7.0
}

// What can keep a process from being traced. Match with errors.Is.
var (
	ErrUnsupported   = errors.New("not supported by this kernel")
	ErrLockedDown    = errors.New("the kernel is locked down")
	ErrNotPrivileged = errors.New("missing privilege")
	ErrContainer     = errors.New("a user namespace gives no rights outside of it")
	ErrNoProcess     = errors.New("no such process")
	ErrKernelThread  = errors.New("is a kernel thread")
	ErrZombie        = errors.New("is a zombie")
	ErrLeaderless    = errors.New("has ended its main thread")
	ErrMachine       = errors.New("cannot be traced here")
	ErrEmulated      = errors.New("runs in an emulator")
	ErrNoAllocator   = errors.New("has no known allocator")
	ErrStripped      = errors.New("has no known allocator") // that could be found: names are missing
	// ErrGo is an ErrNoAllocator, too.
	ErrGo = fmt.Errorf("%w: it is a Go program, whose memory comes from Go's own runtime", ErrNoAllocator)
)

// unsupported says which feature is missing and what would have it.
func unsupported(feature, since string) error {
	return fmt.Errorf("%s: %w: it needs Linux %s", feature, ErrUnsupported, since)
}

// Kernel asks the kernel.
type Kernel struct{}

// Capabilities (include/uapi/linux/capability.h).
const (
	CapSysPtrace = 19
	CapSysAdmin  = 21
	CapPerfmon   = 38
	CapBPF       = 39
)

// Capabilities implements Features.
func (Kernel) Capabilities() error {
	if err := checkUserNamespace(); err != nil {
		return err
	}
	status, err := proc.ReadStatus(os.Getpid())
	if err != nil {
		return fmt.Errorf("read own capabilities: %w", err)
	}
	return CheckCapabilities(status.CapEff)
}

// CheckCapabilities names what is missing in the effective set. CAP_SYS_ADMIN
// includes CAP_BPF and CAP_PERFMON.
func CheckCapabilities(effective uint64) error {
	has := func(c uint) bool { return effective>>c&1 != 0 }
	var missing []string
	if !has(CapBPF) && !has(CapSysAdmin) {
		missing = append(missing, "CAP_BPF")
	}
	if !has(CapPerfmon) && !has(CapSysAdmin) {
		missing = append(missing, "CAP_PERFMON")
	}
	if !has(CapSysPtrace) {
		missing = append(missing, "CAP_SYS_PTRACE")
	}
	if missing != nil {
		return fmt.Errorf("%w %s", ErrNotPrivileged, strings.Join(missing, ", "))
	}
	return nil
}

// initialUserNamespace is the number of the namespace that is there from the
// start (PROC_USER_INIT_INO of include/linux/proc_ns.h).
const initialUserNamespace = 0xEFFFFFFD

// checkUserNamespace refuses to work where root is not the machine's: it has all
// capabilities there, which count for nothing.
func checkUserNamespace() error {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/user", &st); err != nil || st.Ino == initialUserNamespace {
		return nil // a kernel without namespaces has no such file
	}
	return ErrContainer
}

// kernelTypes is where kernels have theirs since Linux 5.4.
const kernelTypes = "/sys/kernel/btf/vmlinux"

// Types implements Features.
func (Kernel) Types() error {
	// They are read when programs are loaded; to read them twice would cost 10 ms.
	if info, err := os.Stat(kernelTypes); err == nil && info.Size() > 0 {
		return nil
	}
	if _, err := btf.LoadKernelSpec(); errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("types of the kernel: %w: it needs CONFIG_DEBUG_INFO_BTF and %s", ErrUnsupported, kernelTypes)
	} else if err != nil {
		return fmt.Errorf("read the types of the kernel: %w", err)
	}
	return nil
}

// KernelReads asks for a helper that all kernels with ring buffers have, and that
// a locked-down one keeps from programs. The library takes an older helper in its
// place then, and does not know what to make of that one's being refused as well.
func (Kernel) KernelReads() error {
	err := features.HaveProgramHelper(ebpf.Kprobe, asm.FnProbeReadKernel)
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w (lockdown=confidentiality): programs may not read its memory", ErrLockedDown)
	}
	return feature(err, "bpf_probe_read_kernel", "5.5")
}

// PerfUprobes implements Features.
func (Kernel) PerfUprobes() error {
	const events = "/sys/bus/event_source/devices/uprobe/type"
	if _, err := os.Stat(events); err != nil {
		return fmt.Errorf("uprobes as perf events: %w: it needs CONFIG_UPROBE_EVENTS and %s", ErrUnsupported, events)
	}
	return nil
}

// NarrowSteps asks for what came with the kernel's commit "x86/uprobes: Fix XOL allocation
// failure for 32-bit tasks" (7.0, and stable kernels of 2026).
func (Kernel) NarrowSteps() error {
	const added = "arch_uprobe_get_xol_area"
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("read the types of the kernel: %w", err)
	}
	var f *btf.Func
	if err := spec.TypeByName(added, &f); err == nil {
		return nil
	}
	if names, err := os.ReadFile("/proc/kallsyms"); err == nil && bytes.Contains(names, []byte(" "+added+"\n")) {
		return nil
	}
	return unsupported("single-stepping of 32-bit programs whose stack is at the very top", "7.0")
}

// PerfRefused says what a kernel wants that refuses to open a perf event although
// this process has CAP_PERFMON. For uprobes some want more; for any event Debian's
// do, unless kernel.perf_event_paranoid is lowered to 2.
func PerfRefused(err error) error {
	if errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w CAP_SYS_ADMIN: this kernel wants it for such perf events", ErrNotPrivileged)
	}
	return err
}

// RingBuffer implements Features.
func (Kernel) RingBuffer() error {
	return feature(features.HaveMapType(ebpf.RingBuf), "BPF ring buffers", "5.8")
}

// AttachCookie implements Features.
func (Kernel) AttachCookie() error {
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie), "attach cookies", "5.15")
}

// TaskStorage asks for the helper alone, which is younger than the map: making one of
// these maps for a test takes a grace period of the kernel.
func (Kernel) TaskStorage() error {
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnTaskStorageGet), "task storage in uprobe programs", "5.16")
}

// Loop implements Features.
func (Kernel) Loop() error {
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnLoop), "bpf_loop", "5.17")
}

// UprobeMulti implements Features.
func (Kernel) UprobeMulti() error {
	if err := feature(features.HaveBPFLinkUprobeMulti(), "uprobe_multi", "6.6"); err != nil {
		return err
	}
	return multiSeesThreads()
}

// feature turns what the feature library says into our errors.
func feature(err error, name, since string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ebpf.ErrNotSupported):
		return unsupported(name, since)
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return fmt.Errorf("use BPF: %w: the kernel is locked down or a security module forbids it", ErrUnsupported)
	default:
		return fmt.Errorf("test for %s: %w", name, err)
	}
}
