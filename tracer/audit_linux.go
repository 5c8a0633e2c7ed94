package tracer

import (
	"sync"
	"time"

	"rtrace-bpf/internal/linux/proc"
)

// An audit follows the one before after at least this long, and so many times as long
// as that took: a neighbour that fills the buffers costs the tracer a fifth of a
// processor at most.
const (
	auditPause  = 100 * time.Millisecond
	auditFactor = 4
)

// auditor reads what the process has mapped, and its threads, when the kernel has
// dropped records about them. Only what the stream did not know is lost. The collector
// owns it.
type auditor struct {
	target  *target
	due     bool
	doubt   doubt
	since   uint64 // everything up to then was received
	busy    bool
	open    doubt  // of the one that is under way, or was the last
	began   uint64 // when that began
	ended   uint64 // when its outcome took its place in the order; 0: it has not
	next    uint64 // not before this time
	found   chan side
	running sync.WaitGroup
}

// doubt is why the records about a process may be incomplete.
type doubt uint8

// The reasons, the stronger ones last.
const (
	doubtOthers  doubt = iota // records were dropped from buffers that all processes fill
	doubtTight                // there was little room in buffers that this process alone fills
	doubtDropped              // the kernel said that it dropped records from those
)

// newAuditor returns the auditor of a process.
func newAuditor(t *target) *auditor { return &auditor{target: t, found: make(chan side, 1)} }

// ask wants an audit, of what may have been dropped after since.
func (a *auditor) ask(since uint64, why doubt) {
	if !a.due || since < a.since {
		a.since = since
	}
	a.due, a.doubt = true, max(a.doubt, why)
}

// begin begins an audit if one is due and it is time for it.
func (a *auditor) begin(now uint64) {
	if !a.due || a.busy || now < a.next {
		return
	}
	a.busy, a.open, a.due, a.doubt = true, a.doubt, false, 0
	a.began, a.ended = now, 0
	since := a.since
	a.running.Go(func() { a.found <- a.read(since) })
}

// spoiled reports whether an exec at time was in the middle of an audit, which may have
// read the mappings of the program before.
func (a *auditor) spoiled(time uint64) bool {
	return a.began != 0 && time >= a.began && (a.ended == 0 || time <= a.ended)
}

// end returns an audit that is over, and whether there is one. One that has found
// nothing is due again: the process has ended, or is in the middle of an exec.
func (a *auditor) end() (side, bool) {
	select {
	case x := <-a.found:
		a.busy = false
		now := clock()
		a.next = now + max(uint64(auditPause), auditFactor*(now-x.seen))
		if len(x.snapshot) == 0 {
			a.ask(x.since, a.open)
			return side{}, false
		}
		return x, true
	default:
		return side{}, false
	}
}

// last waits for an audit that is under way, and makes one that is due.
func (a *auditor) last() (all []side) {
	a.running.Wait()
	if x, ok := a.end(); ok {
		all = append(all, x)
	}
	if a.due {
		if x := a.read(a.since); len(x.snapshot) > 0 {
			a.due, a.doubt = false, 0
			all = append(all, x)
		}
	}
	return all
}

// read reads the mappings and threads. Of a process that has ended, or is in the
// middle of an exec, there are no mappings.
func (a *auditor) read(since uint64) side {
	x := side{kind: sideAudit, pid: uint32(a.target.pid), since: since, seen: clock()}
	snapshot, err := a.target.mappings()
	if err != nil {
		return x
	}
	threads, err := proc.Threads(a.target.pid)
	if err != nil {
		return x
	}
	x.snapshot, x.threads = snapshot, threads
	return x
}
