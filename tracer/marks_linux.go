package tracer

import (
	"errors"

	"rtrace-bpf/tracer/order"
)

// ErrEnded reports that the recording has ended.
var ErrEnded = errors.New("the recording has ended")

// mark is a mark that the user sets.
type mark struct {
	name string
	set  chan struct{} // closed when the mark is in the order of events
}

// Mark puts a mark into the trace: a context record without a bit, so that no call refers
// to it. All that the process does after Mark returned comes after the mark. Any
// goroutine may call it while another one calls ReadRecord. The error is ErrEnded if the
// recording has ended.
func (t *Tracer) Mark(name string) error {
	m := mark{name: name, set: make(chan struct{})}
	select {
	case t.collector.marks <- m:
	case <-t.collector.ended:
		return ErrEnded
	}
	<-m.set // does not block: the collector received the mark and sets it at once
	return nil
}

// takeMarks adds the waiting marks to the order of events.
func (c *collector) takeMarks() {
	for {
		select {
		case m := <-c.marks:
			c.addSide(&order.Side{Kind: order.SideMark, Time: order.Clock(), Name: m.name})
			close(m.set)
		default:
			return
		}
	}
}
