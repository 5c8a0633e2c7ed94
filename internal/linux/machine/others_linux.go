package machine

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"
)

// others reads which other processes use the processors. The kernel provides the processor time
// of any process as a clock, so no file needs to be read.
type others struct {
	except int
	dir    *os.File
	known  []process // ordered by ID
	listed pace
	slower pace
	readAt int64
	loads  []Load
}

// process is another process.
type process struct {
	pid int
	cpu int64 // processor time in ns
}

// listEvery is the maximum age of the list of processes.
const listEvery = time.Second

func newOthers(except int) (*others, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return &others{except: except, dir: dir, listed: pace{least: int64(listEvery)}}, nil
}

// read appends the loads since the last reading.
func (o *others) read(dst []Load, now int64, processors int) []Load {
	o.slower.run(now, spent, func() {
		capacity := float64(now-o.readAt) * float64(processors)
		o.readAt = now
		o.loads = o.loads[:0]
		left := o.known[:0]
		for _, p := range o.known {
			cpu, err := cpuClock(p.pid)
			if err != nil {
				continue // it has ended
			}
			// A clock that went back belongs to another process that reuses the ID.
			if load := percent(cpu-p.cpu, capacity); load > 0 {
				o.loads = append(o.loads, Load{p.pid, load})
			}
			left = append(left, process{p.pid, cpu})
		}
		o.known = left
		o.listed.run(now, spent, o.list)
	})
	return append(dst, o.loads...)
}

func (o *others) find(pid int) (int, bool) {
	return slices.BinarySearchFunc(o.known, pid, func(p process, pid int) int { return p.pid - pid })
}

// list reads which processes exist. The processor time of new ones counts from now on.
func (o *others) list() {
	if _, err := o.dir.Seek(0, io.SeekStart); err != nil {
		return
	}
	names, err := o.dir.Readdirnames(-1)
	if err != nil {
		return // keep the known ones
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == o.except {
			continue
		}
		i, ok := o.find(pid)
		if ok {
			continue
		}
		if cpu, err := cpuClock(pid); err == nil {
			o.known = slices.Insert(o.known, i, process{pid, cpu})
		}
	}
}

func (o *others) Close() {
	if o != nil {
		o.dir.Close()
	}
}
