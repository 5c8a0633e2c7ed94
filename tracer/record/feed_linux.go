package record

import "rtrace-bpf/tracer/order"

// feed holds the events that the stream received and has not made records of yet.
type feed struct {
	batch   *order.Batch
	at      int           // index of the next event in batch
	ready   []order.Event // events that moves has decided
	readyAt int
	moves   *moves
}

// direct returns the next event if it needs no decision, as most do, and none is waiting; else
// nil. It is short enough to be inlined.
func (f *feed) direct() *order.Event {
	if f.readyAt < len(f.ready) || f.batch == nil || f.at == len(f.batch.Events) {
		return nil
	}
	e := &f.batch.Events[f.at]
	if !f.moves.pass(e) {
		return nil
	}
	f.at++
	return e
}

// next returns the next event that is decided, or nil; call it if direct returned nil. The
// event is valid until the next call.
func (f *feed) next() *order.Event {
	for {
		if f.readyAt < len(f.ready) {
			f.readyAt++
			return &f.ready[f.readyAt-1]
		}
		if f.batch == nil || f.at == len(f.batch.Events) {
			f.batch = nil
			return nil
		}
		f.at++
		f.ready, f.readyAt = f.moves.add(&f.batch.Events[f.at-1]), 0
	}
}

// end decides the events that still wait.
func (f *feed) end() { f.ready, f.readyAt = f.moves.flush(), 0 }
