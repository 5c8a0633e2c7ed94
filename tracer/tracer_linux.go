package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/collector"
	"rtrace-bpf/tracer/governor"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/record"
)

var (
	// ErrEnded reports that the recording has ended.
	ErrEnded = collector.ErrEnded
	// ErrProcessEnded reports that the process ended before it was recorded.
	ErrProcessEnded = errors.New("ended before it was recorded")
)

// Tracer records the allocator calls of a running process. It is a trace.Reader whose
// times are those of CLOCK_MONOTONIC, in ns. ReadRecord waits for the next record. After
// Stop or the end of the process it returns everything up to that moment, and then
// io.EOF.
//
// One goroutine may call ReadRecord while others call Stop. Close must be the last call.
type Tracer struct {
	plan      *plan.Plan
	kernel    *kernel
	collector *collector.Collector
	governor  *governor.Governor
	windows   *governor.Windows // nil without a budget
	stream    *record.Stream
	running   sync.WaitGroup
	ticker    *time.Ticker

	batch  *order.Batch // the batch that the stream reads
	ended  bool         // there are no more batches
	exited bool         // the process has ended
	over   bool         // the last record was returned
	costed bool         // the record of the costs was returned
	err    error
}

// Open attaches to the process and starts recording. It owns p from then on, and closes
// it on an error too. The caller must call ReadRecord until it returns io.EOF or an
// error, and then Close.
func Open(p *plan.Plan) (*Tracer, error) {
	if len(p.Options.Modules) > 0 {
		p.Open = p.Target.Descriptors() // files opened after this are events
	}
	k := newKernel(p)
	windows, err := k.attachWithin(p)
	if err != nil {
		if p.Target.Ended() {
			err = fmt.Errorf("process %d %w: %w", p.Options.PID, ErrProcessEnded, err)
		}
		return nil, errors.Join(err, k.Close(), p.Close())
	}
	t := &Tracer{plan: p, kernel: k, windows: windows, ticker: time.NewTicker(plan.TickInterval)}
	t.governor = governor.New(p.Options.MaxRate, p.Target.PID, p.Target, &k.programs.Switch, k.probes)
	if err := t.collect(); err != nil {
		return nil, errors.Join(err, k.Close(), p.Close())
	}
	t.stream = record.NewStream(p, record.StreamLinks{
		Moved: func(number int, code process.Extent) { t.err = errors.Join(t.err, k.unwinding.relocate(number, code)) },
		Ended: k.programs.Forget, Baseline: t.baseline, Installed: k.unwinding.installed,
	})
	k.unwinding.start()
	if windows != nil {
		if err := t.governor.Within(windows); err != nil {
			return nil, errors.Join(err, t.collector.Close(), k.Close(), p.Close())
		}
	}
	t.running.Go(t.collector.Run)
	return t, nil
}

// collect makes the collector and has it watch the processes that hold the probes.
func (t *Tracer) collect() (err error) {
	k, o := t.kernel, &t.plan.Options
	links := collector.Links{
		Sources: k.rings.sources, Sideband: k.sideband, Target: t.plan.Target, Losses: k.losses,
		Disable: k.programs.Switch.Disable, Follower: k.unwinding.follower, Governor: t.governor,
		DrainLimit: o.Testing.DrainLimit, Eager: o.Idle != nil,
	}
	if k.probes.Functions != nil {
		links.Functions = k.probes.Functions.Changed
	}
	if t.collector, err = collector.New(&links); err != nil {
		return err
	}
	_, keeper := k.probes.Keeper()
	err = t.collector.WatchKeeper(keeper)
	if err == nil && k.probes.Functions != nil {
		err = k.probes.Functions.Follow(t.collector.WatchKeeper)
	}
	if err != nil {
		return errors.Join(err, t.collector.Close())
	}
	return nil
}

func (t *Tracer) baseline() (b record.Baseline) {
	b.Time, b.Threads, b.Mappings = t.collector.Baseline()
	return b
}

// ReadRecord implements trace.Reader.
func (t *Tracer) ReadRecord(r *trace.Record) error {
	for {
		if t.stream.Next(r) {
			return nil
		}
		if t.ended {
			return t.finish(r)
		}
		t.receive()
	}
}

// receive takes the next batch from the collector.
func (t *Tracer) receive() {
	if t.batch != nil {
		t.collector.Reuse(t.batch)
		t.batch = nil
	}
	b, ticked := t.next()
	if ticked {
		return
	}
	if b == nil {
		t.ended = true
		t.stream.End()
		return
	}
	t.batch = b
	if b.Err != nil {
		t.err = errors.Join(t.err, b.Err)
	}
	if b.Exited {
		t.exited = true
	}
	t.stream.Take(b)
}

// next waits for a batch, or for the next tick. It returns nil at the end.
func (t *Tracer) next() (b *order.Batch, ticked bool) {
	if idle := t.plan.Options.Idle; idle != nil {
		select {
		case b := <-t.collector.Batches():
			return b, false
		default:
			idle()
		}
	}
	select {
	case b := <-t.collector.Batches():
		return b, false // nil when closed
	case <-t.ticker.C:
		t.stream.Tick(t.collector.Taken())
		if tick := t.plan.Options.Tick; tick != nil {
			tick()
		}
		return nil, true
	}
}

// finish returns the last record once, and after that io.EOF or the error.
func (t *Tracer) finish(r *trace.Record) error {
	switch {
	case t.err != nil:
		return t.err
	case t.windows != nil && !t.costed:
		t.costed = true
		*r = trace.Record{Kind: trace.KindCost, Time: int64(order.Clock()), PID: int32(t.plan.Target.PID), Cost: t.windows.Cost()}
		return nil
	case t.exited:
		t.exited = false
		pid := int32(t.plan.Target.PID)
		*r = trace.Record{Kind: trace.KindExit, Time: int64(order.Clock()), PID: pid, TID: pid, Exit: trace.Exit{Process: true}}
		return nil
	case !t.over:
		t.over = true
		*r = trace.Record{Kind: trace.KindEnd, Time: int64(order.Clock()), PID: int32(t.plan.Target.PID)}
		return nil
	}
	return io.EOF
}

// Stop ends the recording. ReadRecord then returns the records up to now, and io.EOF.
// Stop may be called from any goroutine, any number of times.
func (t *Tracer) Stop() {
	// Disable at once, because the collector may be waiting for the reader. The collector
	// calls Disable again and reports its error.
	_ = t.kernel.programs.Switch.Disable()
	t.collector.Stop()
}

// Mark puts a mark into the trace: a context record without a bit, so that no call refers
// to it. All that the process does after Mark returned comes after the mark. Any
// goroutine may call it while another one calls ReadRecord. The error is ErrEnded if the
// recording has ended.
func (t *Tracer) Mark(name string) error { return t.collector.Mark(name) }

// Stats returns the counts for the records that ReadRecord has returned. It must not be
// called while ReadRecord runs.
func (t *Tracer) Stats() record.Stats {
	return t.stream.Summary()
}

// LiveSites returns the n stacks with the most live bytes, in descending order. Unknown
// blocks do not count. It must not be called while ReadRecord runs.
func (t *Tracer) LiveSites(n int) []record.LiveSite { return t.stream.LiveSites(n) }

// LiveBytes returns the number of live bytes after the last record that ReadRecord
// returned, without those of unknown blocks; 0 if live blocks are not tracked. It must
// not be called while ReadRecord runs.
func (t *Tracer) LiveBytes() uint64 { return t.stream.LiveBytes() }

// Residence returns what is known of the resident memory of the process; known is false if page
// faults are not recorded. It must not be called while ReadRecord runs.
func (t *Tracer) Residence() (r record.Residence, known bool) { return t.stream.Residence() }

// Plan returns the plan of the tracer. The tracer owns it.
func (t *Tracer) Plan() *plan.Plan { return t.plan }

// Close stops recording, removes the probes and frees everything. After it, nothing of
// the tracer is left in the kernel.
func (t *Tracer) Close() error { return t.close(false) }

// Leave is Close for a program that ends afterwards. If the process has ended, Leave does
// not wait for the kernel to remove the probes: the keeper does, which takes a tenth of a
// second, or seconds where each probe is a perf event.
func (t *Tracer) Leave() error {
	// When the first process of a PID namespace ends, the kernel ends all others in it,
	// including the keeper.
	return t.close(os.Getpid() != 1)
}

func (t *Tracer) close(leave bool) error {
	t.Stop()
	t.kernel.probes.Wake()            // the governor may be waiting for the keeper
	for range t.collector.Batches() { // let the collector end
	}
	t.running.Wait()
	t.governor.Close()
	if f := t.kernel.probes.Functions; f != nil {
		f.Stop()
	}
	t.ticker.Stop()
	var err error
	if leave && t.collector.Exited() {
		err = t.kernel.probes.Leave()
	}
	return errors.Join(err, t.collector.Close(), t.kernel.Close(), t.plan.Close())
}
