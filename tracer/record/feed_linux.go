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

// next returns the next event that is decided, or nil. The event is valid until the next
// call.
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
		e := &f.batch.Events[f.at]
		f.at++
		if f.moves.pass(e) {
			return e
		}
		f.ready, f.readyAt = f.moves.add(e), 0
	}
}

// end decides the events that still wait.
func (f *feed) end() { f.ready, f.readyAt = f.moves.flush(), 0 }
