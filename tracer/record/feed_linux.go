package record

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/order"
)

// feed holds the events that the stream received and has not made records of yet.
type feed struct {
	batch   *order.Batch
	at      int           // index of the next event in batch
	ready   []order.Event // events that moves has decided
	readyAt int
	moves   *moves
}

// waiting holds what events refer to by number until those events come.
type waiting struct {
	raws       map[uint64]*order.RawStack // by ID
	activities map[uint64]activity.Event
	called     map[uint64]functions.Event
	sides      map[uint64]order.Side
	sideCount  uint64
}

func newWaiting() waiting {
	return waiting{
		raws: map[uint64]*order.RawStack{}, activities: map[uint64]activity.Event{},
		called: map[uint64]functions.Event{}, sides: map[uint64]order.Side{},
	}
}

// side returns the side with a number, and removes it.
func (w *waiting) side(id uint64) (order.Side, bool) {
	x, ok := w.sides[id]
	delete(w.sides, id)
	return x, ok
}

// Take gives the stream a batch; call it only after Next returned false. The stream owns
// the batch until Next returns false again.
func (s *Stream) Take(b *order.Batch) {
	s.batch, s.at = b, 0
	for i := range b.Stacks {
		def := b.Stacks[i]
		s.byHash[def.Hash] = &def
	}
	for i := range b.Raws {
		raw := b.Raws[i]
		s.raws[raw.ID] = &raw
	}
	for i := range b.Acts {
		s.activities[b.Acts[i].ID] = b.Acts[i].Event
	}
	for i := range b.Calls {
		s.called[b.Calls[i].ID] = b.Calls[i].Event
	}
	for _, x := range b.Sides {
		s.sides[s.sideCount] = x
		s.sideCount++
	}
}

// Next fills r with the next record, and reports whether there is one.
func (s *Stream) Next(r *trace.Record) bool {
	for {
		if s.pop(r) {
			return true
		}
		if s.readyAt < len(s.ready) {
			e := &s.ready[s.readyAt]
			s.readyAt++
			if s.record(e, r) {
				return true
			}
			continue
		}
		if s.batch == nil || s.at == len(s.batch.Events) {
			s.batch = nil
			return false
		}
		e := &s.batch.Events[s.at]
		s.at++
		if !s.moves.pass(e) {
			s.ready, s.readyAt = s.moves.add(e), 0
		} else if s.record(e, r) {
			return true
		}
	}
}

// End decides the events that still wait; call it after the last batch. Next then returns
// the remaining records.
func (s *Stream) End() {
	s.ready, s.readyAt = s.moves.flush(), 0
	s.flushResources()
	if s.Stats.Unprobed && s.process.Loading(s.mappings.current) {
		s.Stats.Unprobed = false // the process is still starting and has made no calls
	}
}
