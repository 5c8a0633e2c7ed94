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

// Features reports what the running kernel offers and what this process may do.
// Each method returns nil if the feature is there, an error that wraps
// ErrUnsupported or another of the errors below if it is not, or the error of a
// test that failed. The comments have the Linux version that introduced it.
type Features interface {
	Capabilities() error // this process has the capabilities to trace others
	Types() error        // the kernel describes its own types (BTF)
	KernelReads() error  // programs may read the kernel's memory: it is not locked down
	RingBuffer() error   // BPF ring buffers, 5.8
	AttachCookie() error // bpf_get_attach_cookie, 5.15
	TaskStorage() error  // task storage in uprobe programs, 5.16
	Loop() error         // bpf_loop, 5.17
	UprobeMulti() error  // uprobe_multi links whose process filter sees all threads, 6.10
	PerfUprobes() error  // uprobes as perf events, 4.17
	NarrowSteps() error  // 32-bit programs can be single-stepped wherever their stack is, 7.0
}

// Errors that keep a process from being traced. Match them with errors.Is.
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
	ErrStripped      = errors.New("has no known allocator") // the program has no symbols to find one by
	// ErrGo wraps ErrNoAllocator.
	ErrGo = fmt.Errorf("%w: it is a Go program, whose memory comes from Go's own runtime", ErrNoAllocator)
)

// unsupported returns an error that names a missing feature and the Linux version that
// has it.
func unsupported(feature, since string) error {
	return fmt.Errorf("%s: %w: it needs Linux %s", feature, ErrUnsupported, since)
}

// Kernel implements Features by asking the running kernel at each call.
type Kernel struct{}

// Numbers of capabilities (include/uapi/linux/capability.h).
const (
	CapSysPtrace = 19
	CapSysAdmin  = 21
	CapPerfmon   = 38
	CapBPF       = 39
)

// Capabilities implements Features. It returns ErrContainer in a user namespace, or an
// error that wraps ErrNotPrivileged and names the missing capabilities.
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

// CheckCapabilities returns an error that names the capabilities that an effective set
// lacks for tracing; it wraps ErrNotPrivileged. CAP_SYS_ADMIN includes CAP_BPF and
// CAP_PERFMON.
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

// initialUserNamespace is the inode number of the initial user namespace
// (PROC_USER_INIT_INO of include/linux/proc_ns.h).
const initialUserNamespace = 0xEFFFFFFD

// checkUserNamespace returns ErrContainer if this process is in a user namespace other
// than the initial one. Root has all capabilities there, but they give no right to trace.
func checkUserNamespace() error {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/user", &st); err != nil || st.Ino == initialUserNamespace {
		return nil // a kernel without namespaces has no such file
	}
	return ErrContainer
}

// kernelTypes is the file with the kernel's types (BTF), since Linux 5.4.
const kernelTypes = "/sys/kernel/btf/vmlinux"

// Types implements Features.
func (Kernel) Types() error {
	// The types are read when programs are loaded; reading them here too would cost 10 ms.
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

// KernelReads implements Features. It tests for a helper that every kernel with ring
// buffers has and that a locked-down kernel withholds from programs. The feature library
// then tries an older helper in its place, and returns EINVAL when that is refused, too.
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

// NarrowSteps implements Features. It looks for a function that the kernel has since the
// commit "x86/uprobes: Fix XOL allocation failure for 32-bit tasks" (7.0, and stable
// kernels of 2026).
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

// PerfRefused turns EACCES from opening a perf event into an error that wraps
// ErrNotPrivileged and asks for CAP_SYS_ADMIN, and returns other errors as they are.
// Some kernels want that capability for uprobes even if the process has CAP_PERFMON;
// Debian's want it for any event, unless kernel.perf_event_paranoid is lowered to 2.
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

// TaskStorage implements Features. It tests for the helper alone, which is newer than the
// map: creating one of these maps for a test takes a grace period of the kernel.
func (Kernel) TaskStorage() error {
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnTaskStorageGet), "task storage in uprobe programs", "5.16")
}

// Loop implements Features.
func (Kernel) Loop() error {
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnLoop), "bpf_loop", "5.17")
}

// UprobeMulti implements Features. It puts a probe into this process to test that the
// process filter sees all threads.
func (Kernel) UprobeMulti() error {
	if err := feature(features.HaveBPFLinkUprobeMulti(), "uprobe_multi", "6.6"); err != nil {
		return err
	}
	return multiSeesThreads()
}

// feature turns an error of the feature library into one of ours.
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
