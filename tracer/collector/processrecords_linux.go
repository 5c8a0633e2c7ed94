package collector

import (
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/governor"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// processRecords reads the kernel's records about the process, gives them their places in
// the order of events, and has an audit find out what dropped records were about.
type processRecords struct {
	sideband *order.Sideband
	auditor  *order.Auditor
	to       *outlet
	mappings *mappings
	governor *governor.Governor // nil in tests that need none

	sides       []order.Side // of the last poll; memory to use again
	early       []order.Side // received before the first poll
	leaderEnded bool         // the main thread has ended, according to records
	lastExec    uint64       // when the process last replaced its program
	loading     bool         // nothing was mapped since then
	number      uint64       // of the last record
	failed      error        // the process can be watched no longer
}

// poll reads the records, and starts an audit if some were dropped.
func (p *processRecords) poll(now uint64) {
	p.sides = p.sideband.Poll(append(p.sides[:0], p.early...))
	p.early = nil
	for i := range p.sides {
		p.take(&p.sides[i])
	}
	if s := p.sideband.Subscription; s != nil && s.Ended() {
		p.renew(max(p.lastExec, s.Since), p.lastExec < s.Since)
		if p.sideband.Subscription == s {
			s.Leaders = nil // the main thread has ended; others continue
		}
	}
	if p.sideband.Dropped {
		p.auditor.Ask(p.sideband.Since(), p.sideband.Doubt())
		p.sideband.Narrow()
		p.sideband.Settled()
	}
	p.auditor.Begin(now)
	if x, ok := p.auditor.End(); ok {
		p.addAudit(x)
	}
}

// doubt has an audit find out what changed after since, which others than the kernel
// failed to report.
func (p *processRecords) doubt(since uint64) { p.auditor.Ask(since, order.DoubtOthers) }

// take passes on a record of the kernel and notifies what depends on it.
func (p *processRecords) take(x *order.Side) {
	p.number++
	x.Number = p.number
	p.to.addSide(x)
	switch x.Kind {
	case order.SideExit:
		if p.governor != nil {
			p.governor.ThreadEnded(int(x.TID), x.Time)
		}
		if x.TID == x.PID {
			p.leaderEnded = true
			p.renew(x.Time, false)
		}
	case order.SideExec:
		p.leaderEnded, p.lastExec, p.loading = false, x.Time, true
		if p.auditor.Spoiled(x.Time) {
			p.auditor.Ask(p.auditor.Since, p.auditor.Open)
		}
		p.mappings.mapped(x)
	case order.SideMap:
		p.loading = false
		p.mappings.mapped(x)
	}
}

// renew checks whether a main thread continues after the record of its end. When
// a process executes a set-user-ID program, the kernel closes the main thread's events,
// which looks the same. renew then subscribes to the process again, and adds its
// current mappings as records of that time. No call of the new program has been passed on
// yet. If unseen, the record of the exec itself may be missing, and is added as well.
func (p *processRecords) renew(time uint64, unseen bool) {
	again, err := p.sideband.Renew()
	if err != nil {
		p.failed = errors.Join(p.failed, fmt.Errorf("watch mappings: %w", err))
		return
	}
	if !again {
		if p.loading && p.sideband.PerTask() { // its new program, and what it mapped before it ended, are not known
			p.auditor.Ask(p.lastExec, order.DoubtDropped)
		}
		return
	}
	p.leaderEnded = false
	began := order.Clock()
	all, err := p.auditor.Target.Mappings()
	if err != nil {
		return // the process has ended
	}
	pid := p.sideband.PID
	if threads := p.auditor.Target.Threads(); unseen && len(threads) > 0 {
		p.take(&order.Side{Kind: order.SideExec, Time: time, PID: pid, TID: pid, Name: threads[0].Name})
	}
	for _, m := range all {
		m.Seen = began
		p.take(&order.Side{Kind: order.SideMap, Time: time + 1, PID: pid, TID: pid, Mapping: m})
	}
}

// baseline reads the threads and mappings of the process before the first poll, and the
// time when reading them began. They replace the kernel's records from before, so it does
// not matter if some of those were dropped while the probes were attached and nothing read
// them. baseline reads again if the process replaced its program meanwhile, or more
// records were dropped. There are no mappings if the process has ended, which the trace
// reports later.
func (p *processRecords) baseline(target *process.Target) (began uint64, threads []proc.Thread, maps []process.Mapping) {
	const most = 5
	for range most {
		p.early = p.sideband.Poll(p.early)
		p.sideband.Settled()
		began = order.Clock()
		threads = target.Threads()
		maps, _ = target.Mappings()
		p.early = p.sideband.Poll(p.early)
		if !p.sideband.Dropped && !slices.ContainsFunc(p.early, func(x order.Side) bool {
			return x.Kind == order.SideExec && x.Time >= began
		}) {
			break
		}
	}
	return began, threads, maps
}

// addAudit adds the result of an audit. As in addSnapshot, its place in the order is
// after the reading.
func (p *processRecords) addAudit(x order.Side) {
	x.Time = order.Clock()
	p.auditor.Ended = x.Time
	p.to.addSide(&x)
	p.mappings.changed()
}

// lastAudit handles dropped records at the end of the trace, and reports whether there
// were any. A process that has ended cannot be read. If the buffers also contained
// records of other processes, it is then not known whose records were dropped, and
// nothing counts as lost. Otherwise a loss counts if the kernel reported it, or the end
// of the main thread has no record.
func (p *processRecords) lastAudit() bool {
	all := p.auditor.Last()
	for _, x := range all {
		p.addAudit(x)
	}
	a := p.auditor
	own := a.Doubt == order.DoubtDropped || a.Doubt == order.DoubtTight && !p.leaderEnded
	if a.Due && own && a.Target.Ended() {
		a.Due = false
		p.to.addSide(&order.Side{Kind: order.SideAudit, Time: order.Clock(), PID: p.sideband.PID, Since: a.Since, Seen: a.Since})
		return true
	}
	return len(all) > 0
}
