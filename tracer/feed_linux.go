package tracer

import (
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
)

// feed is the events that the stream was given and has not turned into records yet.
type feed struct {
	batch   *batch
	at      int     // next event of batch
	ready   []event // decided by moves
	readyAt int
	moves   *moves
}

// waiting holds what events refer to by number until they come.
type waiting struct {
	raws       map[uint64]*rawStack // by id
	activities map[uint64]activity.Event
	called     map[uint64]functions.Event
	sides      map[uint64]side
	sideCount  uint64
}

func newWaiting() waiting {
	return waiting{
		raws: map[uint64]*rawStack{}, activities: map[uint64]activity.Event{},
		called: map[uint64]functions.Event{}, sides: map[uint64]side{},
	}
}

// side takes the side of a number.
func (w *waiting) side(id uint64) (side, bool) {
	x, ok := w.sides[id]
	delete(w.sides, id)
	return x, ok
}

// take gives the stream a batch, when next has returned false. The stream keeps it until
// next returns false again.
func (s *stream) take(b *batch) {
	s.batch, s.at = b, 0
	for i := range b.stacks {
		def := b.stacks[i]
		s.byHash[def.hash] = &def
	}
	for i := range b.raws {
		raw := b.raws[i]
		s.raws[raw.id] = &raw
	}
	for i := range b.acts {
		s.activities[b.acts[i].id] = b.acts[i].Event
	}
	for i := range b.calls {
		s.called[b.calls[i].id] = b.calls[i].Event
	}
	for _, x := range b.sides {
		s.sides[s.sideCount] = x
		s.sideCount++
	}
}

// next returns the next record of what the stream was given, and reports whether there
// is one.
func (s *stream) next(r *trace.Record) bool {
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
		if s.batch == nil || s.at == len(s.batch.events) {
			s.batch = nil
			return false
		}
		e := &s.batch.events[s.at]
		s.at++
		if !s.moves.pass(e) {
			s.ready, s.readyAt = s.moves.add(e), 0
		} else if s.record(e, r) {
			return true
		}
	}
}

// end decides what still waits, after the last batch. next returns the records.
func (s *stream) end() {
	s.ready, s.readyAt = s.moves.flush(), 0
	s.flushThings()
	if s.stats.Unprobed && s.process.loading(s.mappings.current) {
		s.stats.Unprobed = false // it has made no calls yet
	}
}
