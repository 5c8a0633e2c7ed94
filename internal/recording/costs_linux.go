package recording

import (
	"time"

	"rtrace-bpf/internal/recording/cost"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/record"
)

// costs follow what tracing costs the process.
type costs struct {
	meter    cost.Meter
	began    time.Duration // processor time of this process when the recording began
	last     cost.Interval // that was measured
	total    *trace.Cost   // of the whole recording; nil if it is not known
	put      bool          // the trace has it
	reported bool          // that they are not known
}

// beginCosts takes the first reading.
func (x *session) beginCosts() {
	x.costs.began = cost.OwnTime()
	x.costs.meter.Look(cost.Reading{CPU: x.extras.resident.CPU()}, time.Now(), host.Costs{})
}

// factor returns how many times as much processor time the process has used because of tracing;
// 0 if that is not known.
func (c *costs) factor() float64 {
	if c.total == nil {
		return 0
	}
	times, _, _, _ := c.total.Slower()
	return times
}

// read reads what tracing has cost up to now. ok is false if that is not known yet. With wait, it
// waits until it is known what a probe costs.
func (x *session) read(stats *record.Stats, wait bool) (now cost.Reading, each host.Costs, ok bool) {
	each, known, err := x.probes.tracer.Costs(wait)
	if err != nil && !x.costs.reported {
		x.costs.reported = true
		x.of.options.Line.Detail("process %d: the cost of tracing it is not known: %v", x.pid, err)
	}
	hits, failed := x.probes.tracer.Hits()
	if failed != nil { // the losses are in the summary
		return now, each, false
	}
	now = cost.Reading{Hits: hits, Calls: stats.Calls, Lost: stats.LostEvents(), CPU: x.extras.resident.CPU()}
	return now, each, known || err != nil || hits.Entries == 0
}

// watch passes to the Reporter that tracing costs the process much, or many calls are lost.
// last is set when the trace has ended.
func (x *session) watch(stats *record.Stats, last bool) {
	now, each, ok := x.read(stats, last)
	if !ok {
		return // the next reading covers this interval as well
	}
	i, warn := x.costs.meter.Look(now, time.Now(), each)
	if !last { // a process that has ended has no processor time
		x.costs.last = i
		x.costs.sum(each)
	}
	if warn {
		x.of.options.Report.Expensive(x.pid, &i, each)
	}
}

// sum computes the cost of the whole recording, unless the tracer has.
func (c *costs) sum(each host.Costs) {
	if c.put {
		return
	}
	if total, ok := c.meter.Total(each); ok {
		total.Tracer = int64(cost.OwnTime() - c.began)
		c.total = &total
	}
}

// beforeEnd passes what recording has cost the process to put, before the record that ends the
// trace. With windows, the tracer has put it.
func (x *session) beforeEnd(rec *trace.Record, put func(*trace.Record) error) error {
	c := &x.costs
	if rec.Kind == trace.KindCost {
		total := rec.Cost
		c.total, c.put = &total, true
	}
	if c.put || rec.Kind != trace.KindEnd && (rec.Kind != trace.KindExit || !rec.Exit.Process) {
		return nil
	}
	now, each, ok := x.read(&record.Stats{}, true)
	if ok && !c.reported {
		c.meter.Note(now)
		c.sum(each)
	}
	c.put = true
	if c.total == nil {
		return nil
	}
	return put(&trace.Record{Kind: trace.KindCost, Time: rec.Time, PID: int32(x.pid), Cost: *c.total})
}
