package tracer

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/proc"
)

// Features tells what the running kernel offers and what this process may do.
// Each method returns nil, an error that wraps ErrUnsupported, or what went
// wrong while asking.
type Features interface {
	Capabilities() error // of this process, for tracing others
	RingBuffer() error   // BPF ring buffers, 5.8
	AttachCookie() error // bpf_get_attach_cookie, 5.15
	TaskStorage() error  // in uprobe programs, 5.16
	Loop() error         // bpf_loop, 5.17
	UprobeMulti() error  // uprobe_multi links whose process filter sees all threads, 6.10
}

// What can keep a process from being traced. Match with errors.Is.
var (
	ErrUnsupported   = errors.New("not supported by this kernel")
	ErrNotPrivileged = errors.New("missing privilege")
	ErrNoProcess     = errors.New("no such process")
	ErrKernelThread  = errors.New("is a kernel thread")
	ErrZombie        = errors.New("is a zombie")
	ErrMachine       = errors.New("cannot be traced here")
	ErrEmulated      = errors.New("runs in an emulator")
	ErrNoAllocator   = errors.New("has no known allocator")
)

// unsupported says which feature is missing and what would have it.
func unsupported(feature, since string) error {
	return fmt.Errorf("%s: %w: it needs Linux %s", feature, ErrUnsupported, since)
}

// kernelFeatures asks the kernel.
type kernelFeatures struct{}

// Capabilities (include/uapi/linux/capability.h).
const (
	capSysPtrace = 19
	capSysAdmin  = 21
	capPerfmon   = 38
	capBPF       = 39
)

func (kernelFeatures) Capabilities() error {
	status, err := proc.ReadStatus(os.Getpid())
	if err != nil {
		return fmt.Errorf("read own capabilities: %w", err)
	}
	return checkCapabilities(status.CapEff)
}

// checkCapabilities names what is missing in the effective set. CAP_SYS_ADMIN
// includes CAP_BPF and CAP_PERFMON.
func checkCapabilities(effective uint64) error {
	has := func(c uint) bool { return effective>>c&1 != 0 }
	var missing []string
	if !has(capBPF) && !has(capSysAdmin) {
		missing = append(missing, "CAP_BPF")
	}
	if !has(capPerfmon) && !has(capSysAdmin) {
		missing = append(missing, "CAP_PERFMON")
	}
	if !has(capSysPtrace) {
		missing = append(missing, "CAP_SYS_PTRACE")
	}
	if missing != nil {
		return fmt.Errorf("%w %s", ErrNotPrivileged, strings.Join(missing, ", "))
	}
	return nil
}

func (kernelFeatures) RingBuffer() error {
	return feature(features.HaveMapType(ebpf.RingBuf), "BPF ring buffers", "5.8")
}

func (kernelFeatures) AttachCookie() error {
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie), "attach cookies", "5.15")
}

func (kernelFeatures) TaskStorage() error {
	if err := feature(features.HaveMapType(ebpf.TaskStorage), "task storage", "5.11"); err != nil {
		return err
	}
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnTaskStorageGet), "task storage in uprobe programs", "5.16")
}

func (kernelFeatures) Loop() error {
	return feature(features.HaveProgramHelper(ebpf.Kprobe, asm.FnLoop), "bpf_loop", "5.17")
}

func (kernelFeatures) UprobeMulti() error {
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
