package tracer

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
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/site"
)

// target is the process to be traced.
type target struct {
	pid     int
	machine *machine // of the program when tracing began
	name    string   // argv[0]
	pidfd   int
	files   map[fileID]fileInfo
	texts   []probedText // the code that is probed, by the number that sites have

	addressBits int // of the highest address in use
}

// probedText is the code of a file with a probed allocator.
type probedText struct {
	file fileID
	base uint64 // its address in the file
	code extent // where the process has it
}

// in returns where the code is when its file is mapped at m.
func (x *probedText) in(m mapping, info fileInfo) extent {
	if !info.known {
		return extent{start: m.start, end: m.end}
	}
	start := info.bias + x.base
	return extent{start, start + x.code.end - x.code.start}
}

// openTarget checks that the process can be traced and holds on to it.
func openTarget(pid int, features Features) (*target, error) {
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
	t := &target{pid: pid, machine: m, files: map[fileID]fileInfo{}}
	if t.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		return nil, processError(pid, err)
	}
	if t.addressBits, err = addressBits(pid); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if args, err := proc.Cmdline(pid); err == nil && len(args) > 0 {
		t.name = args[0]
	}
	if err := t.checkSteps(features); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// narrow says whether it is a 32-bit program on a 64-bit machine that runs both.
func (t *target) narrow() bool { return t.machine.arch == site.I386 }

// descriptor returns what an open file descriptor of the process is, as package modules
// names it; empty if it is not open.
func (t *target) descriptor(fd int) string {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.pid, fd))
	if err != nil {
		return ""
	}
	return modules.Kind(link)
}

// descriptors returns all of them that are open, by number.
func (t *target) descriptors() map[uint32]string {
	open := map[uint32]string{}
	for _, fd := range proc.Descriptors(t.pid) {
		if kind := t.descriptor(fd); kind != "" {
			open[uint32(fd)] = kind
		}
	}
	return open
}

// origin returns what there is to know of the process from before the trace. What
// cannot be read is left out.
func (t *target) origin() trace.Process {
	p := trace.Process{Name: t.name}
	if stat, err := proc.ReadStat(t.pid); err == nil {
		p.Parent, p.Started = int32(stat.PPID), stat.Started().UnixNano()
	}
	if path, _, err := proc.Exe(t.pid); err == nil {
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
		return 0, processError(pid, err)
	}
	top := uint64(0)
	for _, m := range all {
		if m.Path != "[vsyscall]" && m.Path != trampolines { // not the process's
			top = max(top, m.End-1)
		}
	}
	return bits.Len64(top), nil
}

// checkProcess says why pid is no process that can be traced.
func checkProcess(pid int) error {
	status, err := proc.ReadStatus(pid)
	if err != nil {
		return processError(pid, err)
	}
	stat, err := proc.ReadStat(pid)
	switch {
	case err != nil:
		return processError(pid, err)
	case status.TGID != pid:
		return fmt.Errorf("%d is a thread of process %d: trace that", pid, status.TGID)
	case stat.KernelThread():
		return fmt.Errorf("process %d (%s) %w", pid, printable.Name(stat.Name), ErrKernelThread)
	case status.State.Ended():
		if zombie, err := proc.IsZombie(pid); err == nil && !zombie {
			return fmt.Errorf("process %d (%s) %w: others go on, but the kernel no longer shows its files", pid, printable.Name(stat.Name), ErrLeaderless)
		}
		return fmt.Errorf("process %d (%s) %w: it has ended and waits for its parent", pid, printable.Name(stat.Name), ErrZombie)
	}
	return nil
}

// processError wraps ErrNoProcess if an error of /proc means that the process has ended.
func processError(pid int, err error) error {
	if errors.Is(err, proc.ErrNoProcess) || errors.Is(err, proc.ErrGone) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	return err
}

// mappings reads the executable mappings of the process.
func (t *target) mappings() ([]mapping, error) {
	all, err := proc.Maps(t.pid)
	if err != nil {
		return nil, processError(t.pid, err)
	}
	var out []mapping
	for _, m := range all {
		if m.Perms&proc.Exec != 0 {
			out = append(out, mapping{
				start: m.Start, end: m.End, offset: m.Offset, major: m.Major, minor: m.Minor,
				inode: m.Inode, path: m.Path, deleted: m.Deleted,
			})
		}
	}
	return out, nil
}

// open opens the file behind a mapping, or returns nil if it has none.
func (t *target) open(m mapping) (*symbol.File, string, error) {
	path := proc.Path(t.pid, proc.Map{
		Start: m.start, End: m.end, Offset: m.offset, Major: m.major, Minor: m.minor,
		Inode: m.inode, Path: m.path, Deleted: m.deleted, Perms: proc.Read | proc.Exec,
	})
	if path == "" {
		return nil, "", nil
	}
	// Debug files are looked for below the root as well.
	root := fmt.Sprintf("/proc/%d/root", t.pid)
	if name, ok := strings.CutPrefix(path, root); ok {
		f, err := symbol.OpenIn(root, name)
		return f, path, err
	}
	f, err := symbol.Open(path)
	return f, path, err
}

// vdso is what the kernel calls the library that it maps into every process.
const vdso = "[vdso]"

// maxVDSO is how many bytes of that library are read.
const maxVDSO = 64 << 10

// openCode opens what is mapped at m, which may be the kernel's library. It
// returns nil for code that is in no file.
func (t *target) openCode(m mapping) (*symbol.File, error) {
	if m.path != vdso {
		f, _, err := t.open(m)
		return f, err
	}
	image, err := t.image(m)
	if err != nil {
		return nil, err
	}
	return symbol.New(bytes.NewReader(image), int64(len(image)))
}

// image reads the kernel's library, which m maps.
func (t *target) image(m mapping) ([]byte, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	image := make([]byte, min(m.end-m.start, maxVDSO))
	_, err = memory.ReadAt(image, int64(m.start))
	return image, err
}

// fileInfo reads what the mapping's file tells. Once that is not possible any
// more, it is what was read of the file last.
func (t *target) fileInfo(m mapping) fileInfo {
	id := fileID{major: m.major, minor: m.minor, inode: m.inode}
	info := t.files[id]
	if f, _, err := t.open(m); err == nil && f != nil {
		info = fileInfo{buildID: f.BuildID(), fixed: f.Fixed(), known: true, segments: f.Segments()}
		t.files[id] = info
		_ = f.Close() // it was only read
	}
	if info.known {
		info.bias = m.bias(info.segments)
	}
	return info
}

// threads returns the threads that the process has now.
func (t *target) threads() []proc.Thread {
	threads, err := proc.Threads(t.pid)
	if err != nil {
		return nil // it ended; the trace will say so
	}
	return threads
}

// ended says whether the process has ended.
func (t *target) ended() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// Close lets go of the process.
func (t *target) Close() error { return unix.Close(t.pidfd) }

// pidNamespace is the tracer's own process id namespace.
type pidNamespace struct {
	dev, inode uint64
}

// initialPIDNamespace is the inode of the first one (PROC_PID_INIT_INO).
const initialPIDNamespace = 0xeffffffc

// ownPIDNamespace returns the namespace, or nil if it is the initial one.
func ownPIDNamespace() (*pidNamespace, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return nil, fmt.Errorf("read own process id namespace: %w", &os.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err})
	}
	if st.Ino == initialPIDNamespace {
		return nil, nil
	}
	return &pidNamespace{dev: st.Dev, inode: st.Ino}, nil
}
