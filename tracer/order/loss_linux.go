package order

import (
	"fmt"

	"github.com/cilium/ebpf"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/object"
)

// Loss is the reason why events, or parts of events, are missing.
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
	LossLate        // a record that only affects the order came after later ones had been passed on, or never
	LossSideband    // the kernel dropped the record of a mapping or a thread's name, which became known late
	LossSkipped     // the kernel did not run a program because one was already running on that CPU
	LossUnfinished  // a record was incomplete at the end: it and those after it in its ring are missing
	LossProbesMoved // the thread that the probes were attached to ended, and they were attached to another
	LossProbedLate  // a traced function was in a file that was mapped before its probes were attached
	LossPaused      // MaxRate was exceeded, and the probes were detached for a while
	LossCount
)

var lossNames = [LossCount]string{
	"ring full", "state unavailable", "nesting limit", "missed return", "stack failed",
	"argument unreadable", "late record", trace.LostNames, "program skipped", "record unfinished",
	"probes moved", "probed late", trace.LostPaused,
}

// String returns the reason in the spelling of traces and summaries.
func (l Loss) String() string { return lossNames[l] }

// Incomplete reports whether l counts whole missing events, as opposed to parts of
// events, their order, names, or gaps.
func (l Loss) Incomplete() bool {
	return l != LossStack && l != LossLate && l != LossPaused && l != LossProbesMoved && l != LossSideband
}

// LossCounters reads the kernel's counters and returns how much they grew.
type LossCounters struct {
	Counters *ebpf.Map
	Work     *ebpf.Map
	Programs []*ebpf.Program
	Activity *activity.Activity                                     // nil if no activity is recorded
	Calls    func() (lost functions.Losses, late uint64, err error) // of traced functions; nil if there are none
	Faults   func() (missed uint64, err error)                      // page faults since the last call for which no program ran; nil if none can be
	before   [LossCount]uint64
	perCPU   []uint64
}

// Grown returns the losses since the last call. After an error the result is incomplete.
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
	if c.Faults != nil {
		missed, err := c.Faults()
		if err != nil {
			return delta, err
		}
		delta[LossSkipped] += missed
	}
	return delta, nil
}

// Work counts the work of unwinding.
type Work struct {
	Walks     uint64 // stacks that were not in the stack cache
	Searches  uint64 // addresses whose rule was not in the rule cache
	Compared  uint64 // calls that VerifySites compared
	Differ    uint64 // those of them that were not recorded as they were made
	Unchecked uint64 // stacks that VerifyUnwind did not check because the ring was too full
}

// Done returns the work done since the start.
func (c *LossCounters) Done() (Work, error) {
	var n [object.ProbeWorkKindWORK_COUNT]uint64
	if err := c.sum(c.Work, n[:]); err != nil {
		return Work{}, fmt.Errorf("read work counters: %w", err)
	}
	return Work{
		Walks: n[object.ProbeWorkKindWORK_WALK], Searches: n[object.ProbeWorkKindWORK_SEARCH],
		Unchecked: n[object.ProbeWorkKindWORK_UNCHECKED],
		Compared:  n[object.ProbeWorkKindWORK_COMPARED], Differ: n[object.ProbeWorkKindWORK_DIFFER],
	}, nil
}

// sum adds the values of all CPUs for each element of a per-CPU array.
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
