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

// Target is the process to be traced.
type Target struct {
	PID     int
	Machine *Machine // of the program when tracing began
	Name    string   // argv[0]
	PIDFD   int
	files   map[FileID]FileInfo
	Texts   []ProbedText // the code that is probed, by the number that sites have

	AddressBits int // of the highest address in use
}

// ProbedText is the code of a file with a probed allocator.
type ProbedText struct {
	File FileID
	Base uint64 // its address in the file
	Code Extent // where the process has it
}

// In returns where the code is when its file is mapped at m.
func (x *ProbedText) In(m Mapping, info FileInfo) Extent {
	if !info.Known {
		return Extent{Start: m.Start, End: m.End}
	}
	start := info.Bias + x.Base
	return Extent{start, start + x.Code.End - x.Code.Start}
}

// Open checks that the process can be traced and holds on to it.
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

// Narrow says whether it is a 32-bit program on a 64-bit machine that runs both.
func (t *Target) Narrow() bool { return t.Machine.Arch == site.I386 }

// Descriptor returns what an open file descriptor of the process is, as package modules
// names it; empty if it is not open.
func (t *Target) Descriptor(fd int) string {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.PID, fd))
	if err != nil {
		return ""
	}
	return modules.Kind(link)
}

// Descriptors returns all of them that are open, by number.
func (t *Target) Descriptors() map[uint32]string {
	open := map[uint32]string{}
	for _, fd := range proc.Descriptors(t.PID) {
		if kind := t.Descriptor(fd); kind != "" {
			open[uint32(fd)] = kind
		}
	}
	return open
}

// Origin returns what there is to know of the process from before the trace. What
// cannot be read is left out.
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

// addressBits returns how many bits the highest address of a process has: that of
// the initial stack, which the kernel puts at the end of what it gives out. On
// arm64 that is 2^48, on some kernels less, and more only if the process asked
// for it; signatures of return addresses begin above that. The page of return probes
// may be higher: a process has it that was traced before.
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

// checkProcess says why pid is no process that can be traced.
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

// ProcessError wraps ErrNoProcess if an error of /proc means that the process has ended.
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

// Open opens the file behind a mapping, or returns nil if it has none.
func (t *Target) Open(m Mapping) (*symbol.File, string, error) {
	path := proc.Path(t.PID, proc.Map{
		Start: m.Start, End: m.End, Offset: m.Offset, Major: m.Major, Minor: m.Minor,
		Inode: m.Inode, Path: m.Path, Deleted: m.deleted, Perms: proc.Read | proc.Exec,
	})
	if path == "" {
		return nil, "", nil
	}
	// Debug files are looked for below the root as well.
	root := fmt.Sprintf("/proc/%d/root", t.PID)
	if name, ok := strings.CutPrefix(path, root); ok {
		f, err := symbol.OpenIn(root, name)
		return f, path, err
	}
	f, err := symbol.Open(path)
	return f, path, err
}

// Vdso is what the kernel calls the library that it maps into every process.
const Vdso = "[vdso]"

// maxVDSO is how many bytes of that library are read.
const maxVDSO = 64 << 10

// OpenCode opens what is mapped at m, which may be the kernel's library. It
// returns nil for code that is in no file.
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

// Image reads the kernel's library, which m maps.
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

// FileInfo reads what the mapping's file tells. Once that is not possible any
// more, it is what was read of the file last.
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

// Threads returns the threads that the process has now.
func (t *Target) Threads() []proc.Thread {
	threads, err := proc.Threads(t.PID)
	if err != nil {
		return nil // it ended; the trace will say so
	}
	return threads
}

// Ended says whether the process has ended.
func (t *Target) Ended() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.PIDFD), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// Close lets go of the process.
func (t *Target) Close() error { return unix.Close(t.PIDFD) }

// PIDNamespace is the tracer's own process id namespace.
type PIDNamespace struct {
	Dev, Inode uint64
}

// initialPIDNamespace is the inode of the first one (PROC_PID_INIT_INO).
const initialPIDNamespace = 0xeffffffc

// OwnPIDNamespace returns the namespace, or nil if it is the initial one.
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
