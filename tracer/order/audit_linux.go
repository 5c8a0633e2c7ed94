package order

import (
	"sync"
	"time"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/process"
)

// An audit begins at least auditWait after the one before, and auditFactor times as long
// as that took: a process that fills the buffers costs the tracer at most a fifth of a
// processor.
const (
	auditWait   = 100 * time.Millisecond
	auditFactor = 4
)

// Auditor reads the mappings and threads of the process after the kernel dropped records
// about them. The stream counts as lost only what it did not know. The collector owns the
// Auditor; its methods must not be called concurrently.
type Auditor struct {
	Target  *process.Target
	Due     bool
	Doubt   Doubt
	Since   uint64 // all records up to this time were received
	busy    bool
	Open    Doubt  // the doubt of the current audit, or of the last one
	began   uint64 // when that audit began
	Ended   uint64 // when its result entered the order of events; 0 before
	next    uint64 // earliest time of the next audit
	found   chan Side
	Running sync.WaitGroup
}

// Doubt is the reason why the records about a process may be incomplete.
type Doubt uint8

// The reasons, in ascending order of certainty.
const (
	DoubtOthers  Doubt = iota // the kernel dropped records from buffers that all processes share
	DoubtTight                // the buffers of this process alone were nearly full
	DoubtDropped              // the kernel reported dropped records in the buffers of this process alone
)

// NewAuditor returns the auditor of a process.
func NewAuditor(t *process.Target) *Auditor { return &Auditor{Target: t, found: make(chan Side, 1)} }

// Ask requests an audit for records that may have been dropped after since.
func (a *Auditor) Ask(since uint64, why Doubt) {
	if !a.Due || since < a.Since {
		a.Since = since
	}
	a.Due, a.Doubt = true, max(a.Doubt, why)
}

// Begin starts an audit if one is due and the wait since the last one is over.
func (a *Auditor) Begin(now uint64) {
	if !a.Due || a.busy || now < a.next {
		return
	}
	a.busy, a.Open, a.Due, a.Doubt = true, a.Doubt, false, 0
	a.began, a.Ended = now, 0
	since := a.Since
	a.Running.Go(func() { a.found <- a.read(since) })
}

// Spoiled reports whether an exec at the given time fell into the last audit, which may
// have read the mappings of the old program.
func (a *Auditor) Spoiled(time uint64) bool {
	return a.began != 0 && time >= a.began && (a.Ended == 0 || time <= a.Ended)
}

// End returns the result of an audit that has finished, and whether there is one. An
// audit that found no mappings is due again: the process has ended, or is in the middle
// of an exec.
func (a *Auditor) End() (Side, bool) {
	select {
	case x := <-a.found:
		a.busy = false
		now := Clock()
		a.next = now + max(uint64(auditWait), auditFactor*(now-x.Seen))
		if len(x.Snapshot) == 0 {
			a.Ask(x.Since, a.Open)
			return Side{}, false
		}
		return x, true
	default:
		return Side{}, false
	}
}

// Last waits for the current audit, makes one more if it is due, and returns their
// results.
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

// read reads the mappings and threads. The result has no snapshot if they cannot be read;
// a process that has ended, or is in the middle of an exec, has no mappings.
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
