package host

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Costs is the CPU time that probes cost the process that hits them, on this machine:
// the traps alone, without the recording. It differs tenfold from one machine to another.
type Costs struct {
	Entry  time.Duration // of a probe on an instruction that the kernel emulates
	Return time.Duration // of a return probe, in addition to the entry's
}

// Hits counts how often the programs of a process ran, whether they recorded something or not.
type Hits struct {
	Entries, Returns uint64
	Faults           uint64        // page faults: no probe, so only Inside has their cost
	Inside           time.Duration // spent in our programs; estimated, since one hit in 31 is timed
}

// Since returns the hits since before was counted.
func (h Hits) Since(before Hits) Hits {
	return Hits{h.Entries - before.Entries, h.Returns - before.Returns, h.Faults - before.Faults, h.Inside - before.Inside}
}

// Cost returns the CPU time that hits have cost, including the recording.
func (c Costs) Cost(h Hits) time.Duration {
	return time.Duration(h.Entries)*c.Entry + time.Duration(h.Returns)*c.Return + h.Inside
}

// Sizes of a measurement. It measures CPU time, as the costs of hits are compared with
// the target's. The median leaves out batches that were interrupted.
const (
	costBatches = 64
	costBatch   = 8 // calls
)

// measuring is the measurement in the background for each mechanism. It takes as long as
// starting a tracer, which does not wait for it.
var measuring [MechanismPerf + 1]struct {
	once    sync.Once
	running sync.WaitGroup
	costs   Costs
	err     error
	done    chan struct{}
}

// MeasureInBackground starts MeasureCosts for a mechanism in another goroutine, unless an
// earlier call has.
func MeasureInBackground(m Mechanism) {
	x := &measuring[m]
	x.once.Do(func() {
		x.done = make(chan struct{})
		x.running.Go(func() {
			x.costs, x.err = MeasureCosts(m)
			close(x.done)
		})
	})
}

// EndMeasuring waits until no measurement runs in the background.
func EndMeasuring() {
	for i := range measuring {
		measuring[i].running.Wait()
	}
}

// MeasuredCosts returns the result of the measurement in the background, and whether there
// is one yet. With wait it waits until the measurement has ended. The error is that of the
// measurement.
func MeasuredCosts(m Mechanism, wait bool) (Costs, bool, error) {
	x := &measuring[m]
	if wait {
		x.running.Wait()
	}
	select {
	case <-x.done:
		return x.costs, x.err == nil, x.err
	default:
		return Costs{}, false, nil
	}
}

// MeasureCosts measures what a probe costs a process. It starts a child, which puts probes
// on a function of its own and prints how long calls of it take. It takes some ten
// milliseconds, and does not wait for the child to end, because some kernels take long to
// remove the probes.
func MeasureCosts(m Mechanism) (costs Costs, err error) {
	child := exec.Command(ownProgram)
	child.Args = []string{childCosts, m.String()}
	child.Env = []string{"GODEBUG=asyncpreemptoff=1"} // no signal in a call whose return address is replaced
	var output strings.Builder
	child.Stderr = &output
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return Costs{}, fmt.Errorf("measure what a probe costs: %w", err)
	}
	if _, err = fmt.Fscan(out, &costs.Entry, &costs.Return); err != nil {
		_ = child.Wait()
		return Costs{}, fmt.Errorf("measure what a probe costs: %s%w", output.String(), err)
	}
	go func() { _ = child.Wait() }() // its results are already read
	return costs, nil
}

// ownCosts measures what probes cost this process. The probes are still attached when it
// returns.
func ownCosts(m Mechanism) (Costs, error) {
	attach, err := costProbes(m)
	if err != nil {
		return Costs{}, err
	}
	without := callTime()
	if err := attach(false); err != nil {
		return Costs{}, err
	}
	entry := callTime()
	if err := attach(true); err != nil {
		return Costs{}, err
	}
	return Costs{Entry: max(0, entry-without), Return: max(0, callTime()-entry)}, nil
}

// callTime returns how much CPU time a call of preflightLeaf takes.
func callTime() time.Duration {
	batches := make([]time.Duration, costBatches)
	for i := range batches {
		began := threadTime()
		for range costBatch {
			preflightLeaf()
		}
		batches[i] = threadTime() - began
	}
	slices.Sort(batches)
	return batches[costBatches/2] / costBatch
}

// threadTime returns the CPU time that this thread has used.
func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // cannot fail with these arguments
	return time.Duration(ts.Nano())
}

// costProbes returns a function that puts a probe on preflightLeaf: at its return if ret is
// set, else at its entry. The probe stays until this process ends.
func costProbes(m Mechanism) (attach func(ret bool) error, err error) {
	offset, err := ownFileOffset(preflightAddress())
	if err != nil {
		return nil, err
	}
	exe, err := link.OpenExecutable(ownProgram)
	if err != nil {
		return nil, err
	}
	hits, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	kind := ebpf.AttachNone
	if m == MechanismMulti {
		kind = ebpf.AttachTraceUprobeMulti
	}
	program, err := countingProgram(hits, kind)
	if err != nil {
		return nil, err
	}
	pid := os.Getpid()
	return func(ret bool) error {
		one := &link.UprobeOptions{Address: offset, PID: pid}
		multi := &link.UprobeMultiOptions{Addresses: []uint64{offset}, PID: uint32(pid)}
		var err error
		switch {
		case m == MechanismMulti && ret:
			_, err = exe.UretprobeMulti(nil, program, multi)
		case m == MechanismMulti:
			_, err = exe.UprobeMulti(nil, program, multi)
		case ret:
			_, err = exe.Uretprobe("", program, one)
		default:
			_, err = exe.Uprobe("", program, one)
		}
		return err
	}, nil
}
