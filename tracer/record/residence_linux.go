package record

import (
	"os"
	"time"

	"rtrace-bpf/internal/linux/resident"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/residence"
)

// Names of the calls that resident memory is recorded as.
const (
	pagesTouched   = "page_fault"     // the stack is that of the page fault that brought the pages
	pagesUnknown   = "[unattributed]" // no page fault is known to have brought them
	pagesGone      = "page_release"   // they are not resident any more
	residentType   = "resident"
	residentDetail = "resident memory in bytes"
)

// Residence is what is known of the resident memory of a process, in bytes.
type Residence struct {
	Start, End uint64         // RSS when the recording began and at the last look
	Sums       residence.Sums // at the last look
	Touched    uint64         // touched after the last look, because the process ended then; not in End
	Executed   bool           // the process has executed another program, and Start is 0
}

// pages turns page faults, and looks at which pages are resident, into records of blocks that
// come and go.
type pages struct {
	target *process.Target
	ledger *residence.Ledger
	calls  *allocatorCalls
	stacks *stacks
	out    *outbox
	begun  uint64    // when the first look was over; 0: it has not been
	taken  *reading  // is applied when all events from before it are
	rest   time.Time // when the next look may be taken
	since  uint64    // faults since the last look was taken
	hurry  uint64    // after as many, another one is taken at once
	known  Residence
}

// reading is a view of the resident pages at a time.
type reading struct {
	view *residence.View
	from uint64 // when it began
	time uint64 // when it was over
}

// A look is taken as soon as there were as many page faults, and this share of the resident pages.
const (
	hurryFaults = 256
	hurryShare  = 8
)

// lookShare is how many times as long as a look takes no other look is taken.
const lookShare = 20

// begin takes the first look. known is set if each page fault shows whether the page was there.
func (p *pages) begin(target *process.Target, known bool) {
	p.target = target
	p.ledger = residence.NewLedger(uint64(os.Getpagesize()), known && !residence.Balances())
	p.known.Start = p.total()
	p.begun = order.Clock()
	if x := p.look(); x != nil {
		p.ledger.Begin(x.view)
		p.begun = x.time
	}
	p.known.Sums = p.ledger.Sums()
}

// total returns how much memory is resident; 0 if the process has ended.
func (p *pages) total() uint64 {
	tid, _ := p.target.Carrier()
	usage, err := resident.Total(tid)
	if err != nil {
		return 0
	}
	return usage.Resident
}

// look looks at the pages. It returns nil if the process has ended, or is ending.
func (p *pages) look() *reading {
	x := &reading{from: order.Clock()}
	tid, settled := p.target.Carrier()
	if !settled || tid == 0 {
		return nil
	}
	began := time.Now()
	var err error
	if x.view, err = residence.Read(tid); err != nil {
		return nil
	}
	p.rest = time.Now().Add(lookShare * time.Since(began))
	p.since, p.hurry = 0, max(hurryFaults, x.view.Bytes()/uint64(os.Getpagesize())/hurryShare)
	x.time = order.Clock()
	return x
}

// fault notes a page fault.
func (p *pages) fault(e *order.Event) {
	p.until(e.Time)
	present := e.Size != 0 || e.Time <= p.begun
	p.ledger.Fault(e.Addr, p.cause(e), present)
	p.since++
	if p.since >= p.hurry && p.taken == nil && !time.Now().Before(p.rest) {
		p.taken = p.look()
	}
}

// mapped notes that a mapping is made.
func (p *pages) mapped(e *order.Event) {
	p.until(e.Time)
	a := residence.Area{Start: e.Addr, Size: e.Size, Populated: e.Function != 0, Cause: p.cause(e)}
	if e.Entry != 0 {
		p.ledger.Move(e.Old, e.Entry, a)
		return
	}
	p.ledger.Map(a)
}

// cause returns the cause that an event is.
func (p *pages) cause(e *order.Event) residence.Cause {
	by := residence.Cause{TID: e.TID}
	if e.Stack != 0 {
		by.Stack = p.stacks.keep(e.Stack)
	}
	return by
}

// until applies the look that was taken if all events up to its time are known, because the next
// one is of a time.
func (p *pages) until(now uint64) {
	if p.taken != nil && now > p.taken.time {
		p.apply()
	}
}

// apply records what has changed up to the look that was taken.
func (p *pages) apply() {
	if p.taken == nil {
		return
	}
	x := p.taken
	p.taken = nil
	p.ledger.Look(x.view, func(c *residence.Change) { p.record(x.time, c) })
	p.known.Sums = p.ledger.Sums()
}

// tick takes a look from time to time. All events up to the time taken are known.
func (p *pages) tick(taken uint64) {
	if p.taken != nil && p.taken.time <= taken {
		p.apply()
	}
	if p.taken == nil && !time.Now().Before(p.rest) {
		p.taken = p.look()
	}
}

// executed forgets the old program, whose pages are gone.
func (p *pages) executed(now uint64) {
	if p.taken != nil && p.taken.time <= now {
		p.apply()
	}
	if p.taken != nil && p.taken.from <= now {
		p.taken = nil
	}
	p.ledger.Clear()
	p.known = Residence{Executed: true}
}

// end records what has changed up to now, the end of the recording.
func (p *pages) end() {
	p.apply()
	p.rest = time.Time{}
	total := p.total()
	p.taken = p.look()
	if p.taken != nil && total > 0 {
		p.apply()
		p.known.End = total
		return
	}
	p.taken = nil
	p.known.End = p.known.Sums.Before + p.known.Sums.Attributed + p.known.Sums.Unknown
	now := order.Clock()
	p.known.Touched = p.ledger.End(func(c *residence.Change) { p.record(now, c) })
}

// record makes the record of a change.
func (p *pages) record(now uint64, c *residence.Change) {
	e := order.Event{
		Time: now, PID: uint32(p.target.PID), TID: uint32(p.target.PID), Addr: c.Start, Size: c.End - c.Start,
	}
	if c.Known {
		e.TID = c.Cause.TID
	}
	var r trace.Record
	if c.Gone {
		p.calls.blocks.end(c.Start)
		p.calls.stats.Frees++
		p.calls.heads.fill(&e, &r, trace.OpFree)
		r.Call.Function = pagesGone
	} else {
		r.Call.Function = pagesUnknown
		if c.Known {
			e.Stack, r.Call.Function = c.Cause.Stack, pagesTouched
		}
		p.calls.stats.Allocs++
		p.calls.blocks.begin(&e, p.calls.heads.fill(&e, &r, trace.OpAlloc))
		r.Call.Size = e.Size
	}
	r.Call.Resource = MemoryResource
	p.out.emit(r)
}
