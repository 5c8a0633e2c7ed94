package record

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
)

// MemoryResource is the ID of the resource "memory", the calls of allocators, in every
// trace that the tracer writes.
const MemoryResource = 1

// Stream turns the collector's events into records. It passes each event to the part that
// makes records of its kind.
type Stream struct {
	feed      feed
	out       outbox
	calls     allocatorCalls
	functions functionCalls
	resources resources
	activity  activities
	heap      Heap
	pages     *pages // nil if page faults are not recorded
	sides     sides
	heads     heads
	stacks    stacks
	threads   roster
	mappings  mappings
	program   program
	warn      func(format string, args ...any)
	Stats     Stats
}

// Coverage returns what is known about the unwind tables of mappings. It changes with each
// call of Next.
func (s *Stream) Coverage() *Coverage { return &s.stacks.coverage }

// Take gives the stream a batch; call it only after Next returned false. The stream owns
// the batch until Next returns false again.
func (s *Stream) Take(b *order.Batch) {
	s.feed.batch, s.feed.at = b, 0
	s.stacks.add(b.Stacks, b.Raws)
	for i := range b.Acts {
		s.activity.waiting[b.Acts[i].ID] = b.Acts[i].Event
	}
	for i := range b.Calls {
		s.functions.waiting[b.Calls[i].ID] = b.Calls[i].Event
	}
	s.sides.add(b.Sides)
}

// Next fills r with the next record, and reports whether there is one.
func (s *Stream) Next(r *trace.Record) bool {
	for {
		if s.out.pop(r) {
			return true
		}
		e := s.feed.direct()
		if e == nil {
			e = s.feed.next()
		}
		if e == nil {
			return false
		}
		if s.record(e, r) {
			return true
		}
	}
}

// End decides the events that still wait; call it after the last batch. Next then returns
// the remaining records.
func (s *Stream) End() {
	s.feed.end()
	s.resources.flush()
	if s.pages != nil {
		s.pages.end()
	}
	if s.Stats.Unprobed && s.program.process.Loading(s.mappings.current) {
		s.Stats.Unprobed = false // the process is still starting and has made no calls
	}
}

// Tick is called about once a second, after Next returned false. taken is a time
// up to which Take has been called with all events.
func (s *Stream) Tick(taken uint64) {
	if s.pages != nil {
		s.pages.tick(taken)
	}
}

// Residence returns what is known of the resident memory of the process; known is false if page
// faults are not recorded.
func (s *Stream) Residence() (r Residence, known bool) {
	if s.pages == nil {
		return Residence{}, false
	}
	return s.pages.known, true
}

// record turns e into a record and reports whether r has it. Rare records go to the queue
// instead, and calls below the size limit have no record.
func (s *Stream) record(e *order.Event, r *trace.Record) bool {
	switch e.Kind {
	case order.KindAlloc:
		return s.calls.alloc(e, r)
	case order.KindFree:
		return s.calls.free(e, r)
	case order.KindMove:
		return s.calls.move(e, r)
	case kindFreeEarly:
		return s.calls.freeEarly(e, r)
	case kindAllocAgain:
		return s.calls.allocAgain(e, r)
	case order.KindGrowth:
		return s.heap.grown(e, r)
	case order.KindSide:
		s.side(e.Addr)
	case order.KindRaw:
		s.stacks.raw(e.Addr)
	case order.KindActivity:
		return s.activity.record(e, r)
	case order.KindFunction:
		made, missed := s.functions.record(e, r)
		if missed > 0 {
			lost := s.functions.head(e)
			s.lost(order.LossMissedReturn, uint64(missed), &lost)
			s.out.emit(lost)
		}
		return made
	case order.KindCallStack:
		s.resources.stack(e)
	case order.KindDiffers:
		s.calls.differs.report(e)
	case order.KindFault:
		s.pages.fault(e)
	case order.KindArea:
		s.pages.mapped(e)
	}
	return false
}

// lost makes r the record of a loss, and counts it.
func (s *Stream) lost(reason order.Loss, n uint64, r *trace.Record) {
	s.Stats.Lost[reason] += n
	r.Kind = trace.KindLost
	r.Lost = trace.Lost{Count: n, Reason: reason.String(), Since: s.heads.last}
}

// Summary returns the counts up to now. The caller owns the result.
func (s *Stream) Summary() Stats {
	all := s.Stats.clone()
	if s.program.noMemory {
		all.Unprobed, all.WasUnprobed = false, false // no allocator is traced at all
	}
	all.Resources = s.resources.summary()
	s.stacks.count(&all)
	s.calls.blocks.count(&all)
	return all
}

// LiveSites returns the n stacks with the most live bytes, in descending order. Unknown
// blocks do not count.
func (s *Stream) LiveSites(n int) []LiveSite { return s.calls.blocks.sites(n, s.stacks.checked) }

// LiveBytes returns the number of live bytes, without those of unknown blocks. It returns
// 0 if live blocks are not tracked.
func (s *Stream) LiveBytes() uint64 { return s.calls.blocks.bytes() }
