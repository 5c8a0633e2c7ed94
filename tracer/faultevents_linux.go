package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
)

// faultEvents are the perf events with which the kernel counts the page faults of a process's
// threads. A program runs at each fault. Threads that these threads start are counted with them.
type faultEvents struct {
	program *ebpf.Program
	runs    *ebpf.Variable // how often it has run
	events  map[int]int    // file descriptors, by thread
	missed  uint64         // returned by Missed up to now
}

// perfBitInheritThread limits the inheritance to threads (Linux 5.13,
// include/uapi/linux/perf_event.h). Without it, child processes inherit the event too, and the
// program ignores them.
const perfBitInheritThread = 1 << 35

// openFaultEvents has the program run at the page faults of all threads of a process.
func openFaultEvents(pid int, o *object.ProbeObjects) (*faultEvents, error) {
	f := &faultEvents{program: o.CountedFault, runs: o.CountedFaults, events: map[int]int{}}
	// A thread that has no event yet may start another one. So the list is read until it has
	// no new threads.
	for before := -1; before < len(f.events); {
		before = len(f.events)
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return f, err
		}
		for _, task := range tasks {
			if err := f.open(task.Name()); err != nil {
				return f, err
			}
		}
	}
	return f, nil
}

// open has the program run at the page faults of a thread, unless it has ended.
func (f *faultEvents) open(task string) error {
	tid, err := strconv.Atoi(task)
	if err != nil {
		return err
	}
	if _, ok := f.events[tid]; ok {
		return nil
	}
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: 1,
		Bits:   unix.PerfBitDisabled | unix.PerfBitInherit | perfBitInheritThread,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.EINVAL) {
		attr.Bits &^= perfBitInheritThread
		fd, err = unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open perf event of thread %d: %w", tid, host.Shortage(err))
	}
	f.events[tid] = fd
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, f.program.FD()); err != nil {
		return fmt.Errorf("attach program to perf event: %w", err)
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return fmt.Errorf("enable perf event: %w", err)
	}
	return nil
}

// Missed returns for how many page faults since the last call the kernel did not run the program.
// Those of the last moments may come with the next call.
func (f *faultEvents) Missed() (uint64, error) {
	var counted, runs uint64
	for tid, fd := range f.events {
		var value [8]byte
		if _, err := unix.Read(fd, value[:]); err != nil {
			return 0, fmt.Errorf("read perf event of thread %d: %w", tid, err)
		}
		counted += binary.NativeEndian.Uint64(value[:])
	}
	if err := f.runs.Get(&runs); err != nil { // after the counts, which are then never ahead of it
		return 0, fmt.Errorf("read number of page faults: %w", err)
	}
	if counted <= runs+f.missed {
		return 0, nil
	}
	grown := counted - runs - f.missed
	f.missed += grown
	return grown, nil
}

// Close removes the events.
func (f *faultEvents) Close() error {
	var all []error
	for _, fd := range f.events {
		all = append(all, unix.Close(fd))
	}
	return errors.Join(all...)
}
