package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// maxOpenThreads is the number of threads whose files stay open. The files of further threads
// are opened for each reading.
const maxOpenThreads = 256

// target reads the state of one process.
type target struct {
	pid      int
	page     uint64 // bytes
	statm    *source
	rollup   *source // nil if the kernel has none or does not show it
	tasks    *os.File
	cpu      int64 // processor time in ns
	threads  map[int]*thread
	readAt   int64 // when threads were last read
	round    uint64
	sizes    pace
	slower   pace
	pss      uint64
	loads    []Load
	schedule bool // the kernel reports the processor time of threads in ns
}

// thread is the last reading of a thread.
type thread struct {
	source *source // nil if it does not stay open
	cpu    int64   // processor time in ns
	round  uint64  // when it was last seen
}

func newTarget(pid int) (*target, error) {
	t := &target{pid: pid, page: uint64(os.Getpagesize()), threads: map[int]*thread{}}
	var err error
	if t.cpu, err = cpuClock(pid); err != nil {
		return nil, fmt.Errorf("processor time of process %d: %w", pid, gone(err))
	}
	dir := "/proc/" + strconv.Itoa(pid)
	if t.statm, err = openSource(dir+"/statm", 256); err != nil {
		return nil, fmt.Errorf("sizes of process %d: %w", pid, gone(err))
	}
	if t.tasks, err = os.Open(dir + "/task"); err != nil {
		t.statm.Close()
		return nil, fmt.Errorf("threads of process %d: %w", pid, gone(err))
	}
	_, err = os.Stat(dir + "/schedstat")
	t.schedule = err == nil
	t.rollup, _ = openSource(dir+"/smaps_rollup", 4096)
	return t, nil
}

// gone converts an error that means that the process has ended to ErrGone.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, os.ErrNotExist) || errors.Is(err, io.EOF) {
		return ErrGone
	}
	return err
}

// read reads the state at a time. capacity is the time of all processors since the last
// reading, in ns; 0 in the first one.
func (t *target) read(p *Process, now int64, processors int, capacity float64) error {
	cpu, err := cpuClock(t.pid)
	if err != nil {
		return gone(err)
	}
	p.ID, p.Percent = t.pid, percent(cpu-t.cpu, capacity)
	t.cpu = cpu
	text, err := t.statm.once()
	if err != nil {
		return gone(err)
	}
	virtual, resident, shared, ok := parseStatm(text)
	if !ok {
		return ErrGone // a process that is exiting has no memory
	}
	p.Virtual, p.Resident, p.Shared = virtual*t.page, resident*t.page, shared*t.page
	if t.rollup != nil {
		t.sizes.run(now, spent, func() {
			if text, err := t.rollup.once(); err == nil {
				t.pss, _ = parseKilobytes(text, "Pss:")
			}
		})
	}
	p.PSS = t.pss
	t.slower.run(now, spent, func() { err = t.readThreads(now, processors) })
	p.Threads = append(p.Threads[:0], t.loads...)
	return err
}

// readThreads reads the processor time of each thread.
func (t *target) readThreads(now int64, processors int) error {
	if _, err := t.tasks.Seek(0, io.SeekStart); err != nil {
		return gone(err)
	}
	names, err := t.tasks.Readdirnames(-1)
	if err != nil {
		return gone(err)
	}
	capacity := float64(now-t.readAt) * float64(processors)
	if t.readAt == 0 {
		capacity = 0
	}
	t.readAt = now
	t.round++
	t.loads = t.loads[:0]
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		x, known := t.threads[tid], true
		if x == nil {
			x, known = &thread{}, false
			t.threads[tid] = x
		}
		cpu, err := t.ran(tid, x)
		if err != nil {
			continue // it has ended and is removed below
		}
		x.round = t.round
		load := Load{ID: tid}
		if known {
			load.Percent = percent(cpu-x.cpu, capacity)
		}
		x.cpu = cpu
		t.loads = append(t.loads, load)
	}
	for tid, x := range t.threads {
		if x.round != t.round {
			x.source.Close()
			delete(t.threads, tid)
		}
	}
	slices.SortFunc(t.loads, func(a, b Load) int { return a.ID - b.ID })
	return nil
}

// ran returns the processor time of a thread, in ns.
func (t *target) ran(tid int, x *thread) (int64, error) {
	from := x.source
	if from == nil {
		file := "/stat"
		if t.schedule {
			file = "/schedstat"
		}
		var err error
		if from, err = openSource("/proc/"+strconv.Itoa(t.pid)+"/task/"+strconv.Itoa(tid)+file, 512); err != nil {
			return 0, err
		}
		if len(t.threads) <= maxOpenThreads {
			x.source = from
		} else {
			defer from.Close()
		}
	}
	text, err := from.once()
	if err != nil {
		return 0, err
	}
	if t.schedule {
		n, _, _ := number(text)
		return int64(n), nil
	}
	ticks, _ := parseTicks(text)
	return int64(ticks) * int64(time.Second/proc.TicksPerSecond), nil
}

func (t *target) Close() {
	if t == nil {
		return
	}
	t.statm.Close()
	t.rollup.Close()
	t.tasks.Close()
	for _, x := range t.threads {
		x.source.Close()
	}
}
