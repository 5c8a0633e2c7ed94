package order

import (
	"fmt"

	"github.com/cilium/ebpf"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/object"
)

// Loss is a reason for events, or parts of events, that are missing.
type Loss uint8

// The loss reasons (docs/design/decisions.md, 21). The BPF programs count the first
// ones, in the order of enum loss in bpf/records.h.
const (
	LossRingFull Loss = iota
	LossState
	LossNesting
	LossMissedReturn
	LossStack
	LossArgument
	LossLate        // a record came after younger ones had been passed on, or not at all, where only the order depends on it
	LossSideband    // a mapping or the name of a thread became known late, since the kernel dropped its record
	LossSkipped     // the kernel did not run a program, since one was running on that CPU
	LossUnfinished  // at the end a record was not completed: it and those behind it in its ring are missing
	LossProbesMoved // the thread ended that the probes were attached to, and they were attached to another
	LossProbedLate  // a function that the user names was in a file that was mapped before its probes were in
	LossPaused      // MaxRate was exceeded, and the probes were taken out for a while
	LossCount
)

var lossNames = [LossCount]string{
	"ring full", "state unavailable", "nesting limit", "missed return", "stack failed",
	"argument unreadable", "late record", trace.LostNames, "program skipped", "record unfinished",
	"probes moved", "probed late", trace.LostPaused,
}

// String returns the reason as traces and the summary spell it.
func (l Loss) String() string { return lossNames[l] }

// Incomplete reports whether it counts events that are missing as a whole: not parts of
// events, their order, names, or gaps in which nothing was recorded.
func (l Loss) Incomplete() bool {
	return l != LossStack && l != LossLate && l != LossPaused && l != LossProbesMoved && l != LossSideband
}

// LossCounters reads the kernel's counters and tells what came on top.
type LossCounters struct {
	Counters *ebpf.Map
	Work     *ebpf.Map
	Programs []*ebpf.Program
	Activity *activity.Activity                                     // nil without
	Calls    func() (lost functions.Losses, late uint64, err error) // of named functions; nil without
	before   [LossCount]uint64
	perCPU   []uint64
}

// Grown returns the losses since the last call.
func (c *LossCounters) Grown() ([LossCount]uint64, error) {
	var now, delta [LossCount]uint64
	if err := c.sum(c.Counters, now[:object.ProbeLossLOSS_COUNT]); err != nil {
		return delta, fmt.Errorf("read loss counters: %w", err)
	}
	for _, p := range c.Programs {
		stats, err := p.Stats()
		if err != nil {
			return delta, fmt.Errorf("read program statistics: %w", err)
		}
		now[LossSkipped] += stats.RecursionMisses
	}
	for i := range now {
		delta[i] = now[i] - c.before[i]
	}
	c.before = now
	if c.Activity != nil {
		lost, err := c.Activity.Grown()
		if err != nil {
			return delta, err
		}
		delta[LossRingFull] += lost.Full
		delta[LossSkipped] += lost.Skipped
	}
	if c.Calls != nil {
		lost, late, err := c.Calls()
		if err != nil {
			return delta, err
		}
		delta[LossRingFull] += lost.Full
		delta[LossSkipped] += lost.Skipped
		delta[LossProbedLate] += late
	}
	return delta, nil
}

// Work counts what unwinding took.
type Work struct {
	Walks     uint64 // stacks that were not found in the stack cache
	Searches  uint64 // addresses whose rule was not found in the rule cache
	Unchecked uint64 // stacks that VerifyUnwind should have checked, but the ring was too full
}

// Done returns the work from the start on.
func (c *LossCounters) Done() (Work, error) {
	var n [object.ProbeWorkKindWORK_COUNT]uint64
	if err := c.sum(c.Work, n[:]); err != nil {
		return Work{}, fmt.Errorf("read work counters: %w", err)
	}
	return Work{
		Walks: n[object.ProbeWorkKindWORK_WALK], Searches: n[object.ProbeWorkKindWORK_SEARCH],
		Unchecked: n[object.ProbeWorkKindWORK_UNCHECKED],
	}, nil
}

// sum adds up the elements of a per-CPU array.
func (c *LossCounters) sum(counters *ebpf.Map, to []uint64) error {
	for i := range to {
		if err := counters.Lookup(uint32(i), &c.perCPU); err != nil {
			return err
		}
		for _, n := range c.perCPU {
			to[i] += n
		}
	}
	return nil
}
