package order

import (
	"sync"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/process"
)

// An audit follows the one before after at least this long, and so many times as long
// as that took: a neighbour that fills the buffers costs the tracer a fifth of a
// processor at most.
const (
	auditPause  = 100 * time.Millisecond
	auditFactor = 4
)

// Auditor reads what the process has mapped, and its threads, when the kernel has
// dropped records about them. Only what the stream did not know is lost. The collector
// owns it.
type Auditor struct {
	Target  *process.Target
	Due     bool
	Doubt   Doubt
	Since   uint64 // everything up to then was received
	busy    bool
	Open    Doubt  // of the one that is under way, or was the last
	began   uint64 // when that began
	Ended   uint64 // when its outcome took its place in the order; 0: it has not
	next    uint64 // not before this time
	found   chan Side
	Running sync.WaitGroup
}

// Doubt is why the records about a process may be incomplete.
type Doubt uint8

// The reasons, the stronger ones last.
const (
	DoubtOthers  Doubt = iota // records were dropped from buffers that all processes fill
	DoubtTight                // there was little room in buffers that this process alone fills
	DoubtDropped              // the kernel said that it dropped records from those
)

// NewAuditor returns the auditor of a process.
func NewAuditor(t *process.Target) *Auditor { return &Auditor{Target: t, found: make(chan Side, 1)} }

// Ask wants an audit, of what may have been dropped after since.
func (a *Auditor) Ask(since uint64, why Doubt) {
	if !a.Due || since < a.Since {
		a.Since = since
	}
	a.Due, a.Doubt = true, max(a.Doubt, why)
}

// Begin begins an audit if one is due and it is time for it.
func (a *Auditor) Begin(now uint64) {
	if !a.Due || a.busy || now < a.next {
		return
	}
	a.busy, a.Open, a.Due, a.Doubt = true, a.Doubt, false, 0
	a.began, a.Ended = now, 0
	since := a.Since
	a.Running.Go(func() { a.found <- a.read(since) })
}

// Spoiled reports whether an exec at time was in the middle of an audit, which may have
// read the mappings of the program before.
func (a *Auditor) Spoiled(time uint64) bool {
	return a.began != 0 && time >= a.began && (a.Ended == 0 || time <= a.Ended)
}

// End returns an audit that is over, and whether there is one. One that has found
// nothing is due again: the process has ended, or is in the middle of an exec.
func (a *Auditor) End() (Side, bool) {
	select {
	case x := <-a.found:
		a.busy = false
		now := Clock()
		a.next = now + max(uint64(auditPause), auditFactor*(now-x.Seen))
		if len(x.Snapshot) == 0 {
			a.Ask(x.Since, a.Open)
			return Side{}, false
		}
		return x, true
	default:
		return Side{}, false
	}
}

// Last waits for an audit that is under way, and makes one that is due.
func (a *Auditor) Last() (all []Side) {
	a.Running.Wait()
	if x, ok := a.End(); ok {
		all = append(all, x)
	}
	if a.Due {
		if x := a.read(a.Since); len(x.Snapshot) > 0 {
			a.Due, a.Doubt = false, 0
			all = append(all, x)
		}
	}
	return all
}

// read reads the mappings and threads. Of a process that has ended, or is in the
// middle of an exec, there are no mappings.
func (a *Auditor) read(since uint64) Side {
	x := Side{Kind: SideAudit, PID: uint32(a.Target.PID), Since: since, Seen: Clock()}
	snapshot, err := a.Target.Mappings()
	if err != nil {
		return x
	}
	threads, err := proc.Threads(a.Target.PID)
	if err != nil {
		return x
	}
	x.Snapshot, x.Threads = snapshot, threads
	return x
}
