package process

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/site"
)

// Target is the process to be traced. Its owner closes it.
type Target struct {
	PID     int
	Machine *Machine            // of the program when tracing began
	Name    string              // argv[0]
	PIDFD   int                 // closed by Close
	files   map[FileID]FileInfo // what FileInfo has read
	Texts   []ProbedText        // the code of the probed allocators; packed sites have the index

	AddressBits int // bits of the highest address in use
}

// ProbedText is the code of a file with a probed allocator.
type ProbedText struct {
	File FileID
	Base uint64 // its address in the file
	Code Extent // its addresses in the process
}

// In returns the addresses of the code when its file is mapped at m. Without info it
// returns those of the whole mapping.
func (x *ProbedText) In(m Mapping, info FileInfo) Extent {
	if !info.Known {
		return Extent{Start: m.Start, End: m.End}
	}
	start := info.Bias + x.Base
	return Extent{start, start + x.Code.End - x.Code.Start}
}

// Open checks that the process can be traced, and opens a descriptor for it. The errors
// wrap those of package host where one fits: ErrNoProcess, ErrKernelThread, ErrZombie,
// ErrLeaderless, ErrMachine, ErrEmulated, and those of features.
func Open(pid int, features host.Features) (*Target, error) {
	if err := checkProcess(pid); err != nil {
		return nil, err
	}
	if err := features.Capabilities(); err != nil {
		return nil, fmt.Errorf("trace process %d: %w", pid, err)
	}
	m, err := findMachine(pid)
	if err != nil {
		return nil, err
	}
	t := &Target{PID: pid, Machine: m, files: map[FileID]FileInfo{}}
	if t.PIDFD, err = unix.PidfdOpen(pid, 0); err != nil {
		return nil, ProcessError(pid, err)
	}
	if t.AddressBits, err = addressBits(pid); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if args, err := proc.Cmdline(pid); err == nil && len(args) > 0 {
		t.Name = args[0]
	}
	if err := t.checkSteps(features); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Narrow reports whether the process runs a 32-bit program on a 64-bit machine.
func (t *Target) Narrow() bool { return t.Machine.Arch == site.I386 }

// Descriptor returns what an open file descriptor of the process is, in the words of package
// modules, or "" if it is not open.
func (t *Target) Descriptor(fd int) string {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.PID, fd))
	if err != nil {
		return ""
	}
	return modules.Kind(link)
}

// Descriptors returns what each open file descriptor of the process is, by number.
func (t *Target) Descriptors() map[uint32]string {
	open := map[uint32]string{}
	for _, fd := range proc.Descriptors(t.PID) {
		if kind := t.Descriptor(fd); kind != "" {
			open[uint32(fd)] = kind
		}
	}
	return open
}

// Origin describes the process before the trace: its name, parent, start time and program.
// It leaves out what cannot be read.
func (t *Target) Origin() trace.Process {
	p := trace.Process{Name: t.Name}
	if stat, err := proc.ReadStat(t.PID); err == nil {
		p.Parent, p.Started = int32(stat.PPID), stat.Started().UnixNano()
	}
	if path, _, err := proc.Exe(t.PID); err == nil {
		p.Path = path
	}
	return p
}

// addressBits returns how many bits the highest address of a process has. That is an address
// of the initial stack, which the kernel puts at the end of the address space that it gives
// out. On arm64 that end is 2^48, less on some kernels, and more only if the process asked for
// it; the signature bits of return addresses are above it. The page of return probes does not
// count: it may be higher, and a process that was traced before still has it.
func addressBits(pid int) (int, error) {
	all, err := proc.Maps(pid)
	if err != nil {
		return 0, ProcessError(pid, err)
	}
	top := uint64(0)
	for _, m := range all {
		if m.Path != "[vsyscall]" && m.Path != Trampolines { // not the process's
			top = max(top, m.End-1)
		}
	}
	return bits.Len64(top), nil
}

// checkProcess returns an error if pid is no process that can be traced: a thread, a kernel
// thread, a zombie, or a process whose main thread has ended.
func checkProcess(pid int) error {
	status, err := proc.ReadStatus(pid)
	if err != nil {
		return ProcessError(pid, err)
	}
	stat, err := proc.ReadStat(pid)
	switch {
	case err != nil:
		return ProcessError(pid, err)
	case status.TGID != pid:
		return fmt.Errorf("%d is a thread of process %d: trace that", pid, status.TGID)
	case stat.KernelThread():
		return fmt.Errorf("process %d (%s) %w", pid, printable.Name(stat.Name), host.ErrKernelThread)
	case status.State.Ended():
		if zombie, err := proc.IsZombie(pid); err == nil && !zombie {
			return fmt.Errorf("process %d (%s) %w: others go on, but the kernel no longer shows its files", pid, printable.Name(stat.Name), host.ErrLeaderless)
		}
		return fmt.Errorf("process %d (%s) %w: it has ended and waits for its parent", pid, printable.Name(stat.Name), host.ErrZombie)
	}
	return nil
}

// ProcessError returns an error that wraps ErrNoProcess if err means that the process has
// ended, else err.
func ProcessError(pid int, err error) error {
	if errors.Is(err, proc.ErrNoProcess) || errors.Is(err, proc.ErrGone) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, host.ErrNoProcess)
	}
	return err
}

// Mappings reads the executable mappings of the process.
func (t *Target) Mappings() ([]Mapping, error) {
	all, err := proc.Maps(t.PID)
	if err != nil {
		return nil, ProcessError(t.PID, err)
	}
	var out []Mapping
	for _, m := range all {
		if m.Perms&proc.Exec != 0 {
			out = append(out, Mapping{
				Start: m.Start, End: m.End, Offset: m.Offset, Major: m.Major, Minor: m.Minor,
				Inode: m.Inode, Path: m.Path, deleted: m.Deleted,
			})
		}
	}
	return out, nil
}

// Open opens the ELF file of a mapping and returns its path in this process's view. The
// caller closes the file. Both are zero, without an error, if the mapping has no file.
func (t *Target) Open(m Mapping) (*symbol.File, string, error) {
	path := proc.Path(t.PID, proc.Map{
		Start: m.Start, End: m.End, Offset: m.Offset, Major: m.Major, Minor: m.Minor,
		Inode: m.Inode, Path: m.Path, Deleted: m.deleted, Perms: proc.Read | proc.Exec,
	})
	if path == "" {
		return nil, "", nil
	}
	// The file's debug file is in the process's root, too.
	root := fmt.Sprintf("/proc/%d/root", t.PID)
	if name, ok := strings.CutPrefix(path, root); ok {
		f, err := symbol.OpenIn(root, name)
		return f, path, err
	}
	f, err := symbol.Open(path)
	return f, path, err
}

// Vdso is the name of the mapping of the vDSO, the library that the kernel maps into every
// process.
const Vdso = "[vdso]"

// maxVDSO is the most bytes of the vDSO that are read.
const maxVDSO = 64 << 10

// OpenCode opens the ELF file that is mapped at m, which may be the vDSO; the caller
// closes it. It returns nil, without an error, for code that is in no file.
func (t *Target) OpenCode(m Mapping) (*symbol.File, error) {
	if m.Path != Vdso {
		f, _, err := t.Open(m)
		return f, err
	}
	image, err := t.Image(m)
	if err != nil {
		return nil, err
	}
	return symbol.New(bytes.NewReader(image), int64(len(image)))
}

// Image returns the bytes of the vDSO, which is mapped at m.
func (t *Target) Image(m Mapping) ([]byte, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.PID))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	image := make([]byte, min(m.End-m.Start, maxVDSO))
	_, err = memory.ReadAt(image, int64(m.Start))
	return image, err
}

// FileInfo reads the file of a mapping. If the file cannot be opened any more, it returns
// what was read from it last.
func (t *Target) FileInfo(m Mapping) FileInfo {
	id := FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}
	info := t.files[id]
	if f, _, err := t.Open(m); err == nil && f != nil {
		info = FileInfo{BuildID: f.BuildID(), Fixed: f.Fixed(), Known: true, Segments: f.Segments()}
		t.files[id] = info
		_ = f.Close() // it was only read
	}
	if info.Known {
		info.Bias = m.Bias(info.Segments)
	}
	return info
}

// Threads returns the threads that the process has now; none if it has ended.
func (t *Target) Threads() []proc.Thread {
	threads, err := proc.Threads(t.PID)
	if err != nil {
		return nil // the process has ended, which the trace shows
	}
	return threads
}

// Ended reports whether the process has ended.
func (t *Target) Ended() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.PIDFD), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// Close closes the descriptor of the process.
func (t *Target) Close() error { return unix.Close(t.PIDFD) }

// PIDNamespace identifies a PID namespace by its file in /proc/PID/ns.
type PIDNamespace struct {
	Dev, Inode uint64
}

// initialPIDNamespace is the inode number of the initial PID namespace (PROC_PID_INIT_INO of
// include/linux/proc_ns.h).
const initialPIDNamespace = 0xeffffffc

// OwnPIDNamespace returns the tracer's own PID namespace, or nil if that is the initial one.
func OwnPIDNamespace() (*PIDNamespace, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return nil, fmt.Errorf("read own process id namespace: %w", &os.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err})
	}
	if st.Ino == initialPIDNamespace {
		return nil, nil
	}
	return &PIDNamespace{Dev: st.Dev, Inode: st.Ino}, nil
}
