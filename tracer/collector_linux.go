package tracer

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/tables"
)

// batchQueue is how many batches wait for the reader of records. Further events stay in
// the rings; when those are full, the programs count losses.
const batchQueue = 32

// The rings are polled, because waking the tracer for each event costs more than the
// event (docs/design/decisions.md, 41).
const (
	pollShortest = time.Millisecond
	pollLongest  = 20 * time.Millisecond
	drainLimit   = 2 * time.Second // the longest wait without progress, for a record that a program does not complete
)

// collector moves records from the rings to batches, in order.
type collector struct {
	sources   []order.Source
	sideband  *order.Sideband
	losses    *order.LossCounters
	disable   func() error                      // switches the programs off
	snapshot  func() ([]process.Mapping, error) // reads the process's executable mappings
	auditor   *order.Auditor
	follower  *tables.Follower // nil if there are no unwind tables
	functions *functionProbes  // nil without traced functions
	governor  *governor        // nil in tests that need none
	out       chan *order.Batch
	free      chan *order.Batch // batches to use again
	marks     chan mark
	ended     chan struct{} // closed when run has ended
	epoll     int
	stopFD    int // eventfd that stop sets
	exitFD    int // pidfd of the process
	keeperFD  int // pidfd of the first keeper; -1 if there is none

	merger      order.Merger
	in          []order.Intake
	next        *order.Batch
	sides       []order.Side
	early       []order.Side // received before run
	leaderEnded bool         // the main thread has ended, according to records
	lastExec    uint64       // when the process last replaced its program
	loading     bool         // nothing was mapped since then
	sideCount   uint64
	remaps      uint64 // numbers the sideband records
	wait        time.Duration
	longest     time.Duration // largest value of wait
	limit       time.Duration // drainLimit; tests change it
	lossTime    uint64
	lossBefore  uint64 // time up to which losses were read
	arrived     int    // number of events since the last call of govern
	unfinished  uint64 // number of rings that drain gave up
	exited      bool
	orphaned    bool  // the keeper has ended
	failed      error // error of Poll, but not of reading the rings
}

func newCollector(sources []order.Source, sb *order.Sideband, t *process.Target) (*collector, error) {
	c := &collector{
		sources: sources, sideband: sb, auditor: order.NewAuditor(t), exitFD: t.PIDFD,
		out:  make(chan *order.Batch, batchQueue),
		free: make(chan *order.Batch, batchQueue), marks: make(chan mark), ended: make(chan struct{}),
		in:   make([]order.Intake, len(sources)),
		wait: pollShortest, longest: pollLongest, limit: drainLimit, keeperFD: -1,
	}
	c.merger.Queues = make([]order.Queue, len(sources)+1)
	for i := range c.in {
		c.in[i].Queue, c.in[i].Machine, c.in[i].Number = &c.merger.Queues[i], t.Machine, uint16(i)
	}
	var err error
	if c.stopFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make event descriptor: %w", err)
	}
	if c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make epoll descriptor: %w", err)
	}
	watch := []int{c.stopFD, c.exitFD}
	for _, s := range sources {
		watch = append(watch, s.FD())
	}
	for _, r := range sb.Rings {
		watch = append(watch, r.FD())
	}
	for _, fd := range watch {
		events := uint32(unix.EPOLLIN)
		if fd != c.stopFD && fd != c.exitFD {
			// A ring with data is always readable; only a wake-up counts.
			events |= unix.EPOLLET
		}
		ev := unix.EpollEvent{Events: events, Fd: int32(fd)}
		if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			return nil, fmt.Errorf("watch ring: %w", err)
		}
	}
	return c, nil
}

// stop asks run to end. It may be called from any goroutine, at any time, more than once.
func (c *collector) stop() {
	one := [8]byte{1}
	_, _ = unix.Write(c.stopFD, one[:]) // EAGAIN: it is already set
}

// run polls until stop is called or the process ends, then drains the rings and closes
// out.
func (c *collector) run() {
	defer close(c.out)
	defer close(c.ended)
	if err := c.collect(); err != nil {
		b := c.batch()
		b.Err = err
		c.out <- b
	}
}

func (c *collector) collect() error {
	for {
		bound, more := c.poll()
		c.takeMarks()
		if c.failed != nil {
			return errors.Join(c.failed, c.drain())
		}
		if err := c.govern(); err != nil { // before pass, which may wait for the reader
			return errors.Join(err, c.drain())
		}
		if err := c.pass(bound); err != nil {
			return err
		}
		wait := c.wait
		if more { // always true if the reader is slower than the process; pause still sees the end
			wait = 0
		}
		stop, err := c.pause(wait)
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
func (c *collector) drain() error {
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
			c.unfinished++
			break
		}
		if err := c.pass(bound); err != nil {
			return err
		}
		time.Sleep(pollShortest)
	}
	if g := c.governor; g != nil && g.incomplete() {
		c.addGap(g.since, end)
	}
	if c.lastAudit() {
		c.poll() // the kernel's records of what the audit found may have arrived
		end = order.Clock()
	}
	c.lossTime = 0
	err := errors.Join(errDisable, c.pass(end))
	if c.orphaned {
		err = errors.Join(keeper.ErrEnded, err)
	}
	b := c.batch()
	b.Exited = c.exited
	c.out <- b
	return err
}

// poll reads all rings. It returns the watermark, a time up to which no event can come
// any more, and whether events were left in a ring.
func (c *collector) poll() (bound uint64, more bool) {
	now := order.Clock()
	bound = now - order.ClockSlack
	fullest, remapped := 0.0, false
	for i, s := range c.sources {
		in := &c.in[i]
		before := len(in.Queue.Events)
		bound = min(bound, s.Poll(now, in))
		if len(in.Activities) == 0 && len(in.Calls) == 0 {
			c.arrived += len(in.Queue.Events) - before
		}
		remapped = remapped || in.Maps
		in.Maps = false
		c.next = c.keep(in)
		fullest = max(fullest, s.Used())
		more = more || in.Queue.Room() <= 0
	}
	c.pollSideband(now)
	if remapped {
		c.addSnapshot()
		if c.functions != nil {
			c.functions.changed()
		}
	}
	if c.follower != nil {
		c.follow(remapped)
	}
	switch {
	case fullest > 0.25:
		c.wait = max(c.wait/2, pollShortest)
	case fullest < 1.0/16:
		c.wait = min(c.wait*2, c.longest)
	}
	return bound, more
}

// keep moves the contents of an intake, except the events, to the next batch and returns
// that.
func (c *collector) keep(in *order.Intake) *order.Batch {
	b := c.next
	if b == nil {
		b = c.batch()
	}
	b.Stacks = append(b.Stacks, in.Stacks...)
	b.Raws = append(b.Raws, in.Raws...)
	b.Acts = append(b.Acts, in.Activities...)
	b.Calls = append(b.Calls, in.Calls...)
	in.Stacks, in.Raws, in.Activities, in.Calls = in.Stacks[:0], in.Raws[:0], in.Activities[:0], in.Calls[:0]
	return b
}

func (c *collector) addSide(s *order.Side) {
	c.next.Sides = append(c.next.Sides, *s)
	c.merger.Queues[len(c.sources)].Push(&order.Event{
		Kind: order.KindSide, Time: s.Time, Addr: c.sideCount, PID: s.PID, TID: s.TID, Function: uint16(s.Kind),
	})
	c.sideCount++
}

// follow has the follower look if the mappings changed, and passes on the tables that it
// installed. The programs may already have used them for a moment.
func (c *collector) follow(remapped bool) {
	if remapped {
		c.follower.Changed()
	}
	select {
	case x := <-c.follower.Ready:
		x.Time = order.Clock()
		c.addSide(&x)
	default:
	}
}

// addSnapshot reads the mappings after the dynamic loader changed them. A mapping that is
// gone by now may have existed, and been called, a moment ago, so the result has its
// place in the order after the reading.
func (c *collector) addSnapshot() {
	began := order.Clock()
	maps, err := c.snapshot()
	if err != nil || len(maps) == 0 {
		return // the process has ended, which unmaps nothing in the trace
	}
	c.addSide(&order.Side{Kind: order.SideSnapshot, Time: order.Clock(), Snapshot: maps, Seen: began})
}

// pass sends the events up to bound, and reads the losses about once a second.
func (c *collector) pass(bound uint64) error {
	if now := order.Clock(); now-c.lossTime > uint64(time.Second) || c.lossTime == 0 {
		c.lossTime = now
		if err := c.addLosses(bound); err != nil {
			return err
		}
	}
	for more := true; more; {
		b := c.next
		if b == nil {
			b = c.batch()
		}
		c.next = nil
		b.Events, more = c.merger.Merge(b.Events, bound, order.BatchEvents-len(b.Events))
		if b.Empty() {
			c.next = b
			break
		}
		c.out <- b
	}
	c.merger.Compact()
	return nil
}

func (c *collector) batch() *order.Batch {
	select {
	case b := <-c.free:
		b.Reset()
		return b
	default:
		return order.NewBatch()
	}
}

// pause waits for a wake-up, at most for wait, and reports whether to stop.
func (c *collector) pause(wait time.Duration) (stop bool, err error) {
	var events [8]unix.EpollEvent
	n, err := unix.EpollWait(c.epoll, events[:], int(wait/time.Millisecond))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fmt.Errorf("wait for events: %w", err)
	}
	for i := range max(n, 0) {
		switch int(events[i].Fd) {
		case c.exitFD:
			c.exited = true
			stop = true
		case c.stopFD:
			stop = true
		case c.keeperFD:
			c.orphaned = true
			stop = true
		}
	}
	return stop, nil
}

// Close closes the descriptors; run must have ended.
func (c *collector) Close() error {
	c.auditor.Running.Wait()
	return errors.Join(unix.Close(c.epoll), unix.Close(c.stopFD))
}
