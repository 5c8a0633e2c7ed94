package collector

import (
	"errors"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/governor"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/tables"
)

// drainLimit is the longest wait without progress, for a record that a program does not
// complete.
const drainLimit = 2 * time.Second

// Collector moves records from the rings to batches, in order.
type Collector struct {
	rings    *rings
	outlet   *outlet
	pacer    *pacer
	mappings *mappings
	records  *processRecords
	losses   losses
	marks    marks
	governor *governor.Governor // nil in tests that need none
	target   *process.Target
	disable  func() error // switches the programs off
	limit    time.Duration
}

// Links is what a Collector reads from and reports to. The caller owns all of it, and
// closes it after the Collector.
type Links struct {
	Sources   []order.Source
	Sideband  *order.Sideband
	Target    *process.Target
	Losses    *order.LossCounters
	Disable   func() error       // switches the programs off for good
	Follower  *tables.Follower   // nil if there are no unwind tables
	Functions func()             // looks for traced functions in new mappings, without waiting; nil if there are none
	Governor  *governor.Governor // nil if the probes stay as they are

	DrainLimit time.Duration // the longest wait at the end for a record that a program does not complete; 0 for the default
	Eager      bool          // always polls at the shortest interval
}

// New returns a collector. The caller starts Run in a goroutine, and must call Close.
func New(links *Links) (*Collector, error) {
	var watch []int
	for _, s := range links.Sources {
		watch = append(watch, s.FD())
	}
	for _, r := range links.Sideband.Rings {
		watch = append(watch, r.FD())
	}
	p, err := newPacer(links.Target.PIDFD, watch)
	if err != nil {
		return nil, err
	}
	if links.Eager {
		p.longest = pollShortest
	}
	to := newOutlet(len(links.Sources))
	maps := &mappings{snapshot: links.Target.Mappings, follower: links.Follower, functions: links.Functions}
	c := &Collector{
		rings: newRings(links.Sources, links.Target.Machine, to), outlet: to, pacer: p, mappings: maps,
		records: &processRecords{
			sideband: links.Sideband, auditor: order.NewAuditor(links.Target), to: to, mappings: maps, governor: links.Governor,
		},
		losses: losses{counters: links.Losses}, marks: newMarks(), governor: links.Governor,
		target: links.Target, disable: links.Disable, limit: drainLimit,
	}
	if links.DrainLimit != 0 {
		c.limit = links.DrainLimit
	}
	return c, nil
}

// Batches returns the channel of batches. It is closed when Run has ended.
func (c *Collector) Batches() <-chan *order.Batch { return c.outlet.out }

// Taken returns a time up to which all events have been taken from the channel of batches; 0 if some
// are in it. Only the goroutine that reads the channel may call it.
func (c *Collector) Taken() uint64 {
	passed := c.outlet.passed.Load() // before the check: more events may come after it
	if len(c.outlet.out) > 0 {
		return 0
	}
	return passed
}

// Reuse gives back a batch that nobody reads any more.
func (c *Collector) Reuse(b *order.Batch) {
	select {
	case c.outlet.free <- b:
	default:
	}
}

// Mark puts a mark into the order of events. Any goroutine may call it. The error is
// ErrEnded if the recording has ended.
func (c *Collector) Mark(name string) error { return c.marks.put(name) }

// WatchKeeper makes the recording end with keeper.ErrEnded when the keeper with the
// descriptor fd ends. The first call must come before Run starts; later calls may come
// from any goroutine.
func (c *Collector) WatchKeeper(fd int) error { return c.pacer.watchKeeper(fd) }

// Baseline reads the threads and mappings of the process, and the time when reading them
// began. Call it before Run.
func (c *Collector) Baseline() (began uint64, threads []proc.Thread, maps []process.Mapping) {
	return c.records.baseline(c.target)
}

// Stop asks Run to end. It may be called from any goroutine, at any time, more than once.
func (c *Collector) Stop() { c.pacer.stop() }

// Run polls until Stop is called or the process ends, then drains the rings and closes
// the channel of batches.
func (c *Collector) Run() {
	defer close(c.outlet.out)
	defer close(c.marks.ended)
	if err := c.collect(); err != nil {
		c.outlet.last(false, err)
	}
}

func (c *Collector) collect() error {
	var failed error
	c.outlet.waits = func() {
		if c.governor != nil && failed == nil {
			failed = c.governor.Await()
			c.addTurns()
		}
	}
	for {
		bound, more := c.poll()
		c.marks.take(c.outlet)
		if c.records.failed != nil {
			return errors.Join(c.records.failed, c.drain())
		}
		if err := c.govern(); err != nil { // before pass, which may wait for the reader
			return errors.Join(err, c.drain())
		}
		if err := c.pass(bound); err != nil {
			return err
		}
		if failed != nil {
			return errors.Join(failed, c.drain())
		}
		stop, err := c.pacer.pause(more)
		if err != nil {
			return err
		}
		if stop {
			return c.drain()
		}
	}
}

// drain switches the programs off and passes on every event up to that moment, however
// long the reader takes. It gives up only if a record stays incomplete, and counts that
// as a loss.
func (c *Collector) drain() error {
	c.outlet.waits = nil
	end := order.Clock()
	errDisable := c.disable()
	var last, since uint64 // the bound, and when it last grew
	for {
		bound, _ := c.poll()
		if bound > end {
			break
		}
		if bound > last {
			last, since = bound, order.Clock()
		} else if order.Clock()-since > uint64(c.limit) {
			c.losses.unfinished++
			break
		}
		if err := c.pass(bound); err != nil {
			return err
		}
		time.Sleep(pollShortest)
	}
	if c.governor != nil {
		if gap, ok := c.governor.Incomplete(end); ok {
			c.addGap(gap)
		}
	}
	if c.records.lastAudit() {
		c.poll() // the kernel's records of what the audit found may have arrived
		end = order.Clock()
	}
	c.losses.read = 0
	err := errors.Join(errDisable, c.pass(end))
	if c.pacer.orphaned {
		err = errors.Join(keeper.ErrEnded, err)
	}
	c.outlet.last(c.pacer.exited, nil)
	return err
}

// poll reads all rings. It returns the watermark, a time up to which no event can come
// any more, and whether events were left in a ring.
func (c *Collector) poll() (bound uint64, more bool) {
	now := order.Clock()
	found := c.rings.poll(now, c.outlet)
	c.records.poll(now)
	if found.remapped {
		c.mappings.addSnapshot(c.outlet)
		c.mappings.changed()
	}
	c.mappings.addTables(c.outlet)
	c.pacer.adapt(found.fullest)
	return found.bound, found.more
}

// govern has the governor move the probes, and adds the gap that has ended.
func (c *Collector) govern() error {
	if c.governor == nil {
		return nil
	}
	gap, ok, err := c.governor.Govern(c.rings.takeArrived())
	if ok {
		c.addGap(gap)
	}
	c.addTurns()
	c.pacer.urgent = c.governor.Urgent()
	return err
}

func (c *Collector) addTurns() {
	for _, t := range c.governor.TakeTurns() {
		c.outlet.addSide(&order.Side{Kind: order.SideWindow, Time: t.Time, Window: t.Window})
	}
}

func (c *Collector) addGap(gap governor.Gap) {
	c.outlet.addSide(&order.Side{Kind: order.SideGap, Time: gap.Until, Seen: gap.Since, Reason: gap.Reason})
}

// pass sends the events up to bound, and reads the losses about once a second.
func (c *Collector) pass(bound uint64) error {
	if c.losses.due() {
		if err := c.losses.add(bound, c.outlet, c.records); err != nil {
			return err
		}
	}
	c.outlet.pass(bound)
	return nil
}

// Exited reports whether the process has ended. Call it after Run.
func (c *Collector) Exited() bool { return c.pacer.exited }

// Close frees what the collector has made; Run must have ended.
func (c *Collector) Close() error {
	c.records.auditor.Running.Wait()
	return c.pacer.Close()
}
