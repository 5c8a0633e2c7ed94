package collector

import (
	"errors"

	"rtrace-bpf/tracer/order"
)

// ErrEnded reports that the recording has ended.
var ErrEnded = errors.New("the recording has ended")

// marks receives marks that the user sets.
type marks struct {
	wanted chan mark
	ended  chan struct{} // closed when no mark is received any more
}

type mark struct {
	name string
	set  chan struct{} // closed when the mark is in the order of events
}

func newMarks() marks { return marks{wanted: make(chan mark), ended: make(chan struct{})} }

// put waits until a mark is in the order of events. The error is ErrEnded if the
// recording has ended.
func (m *marks) put(name string) error {
	one := mark{name: name, set: make(chan struct{})}
	select {
	case m.wanted <- one:
	case <-m.ended:
		return ErrEnded
	}
	<-one.set // does not block: the collector received the mark and sets it at once
	return nil
}

// take adds the waiting marks to the order of events.
func (m *marks) take(to *outlet) {
	for {
		select {
		case one := <-m.wanted:
			to.addSide(&order.Side{Kind: order.SideMark, Time: order.Clock(), Name: one.name})
			close(one.set)
		default:
			return
		}
	}
}
