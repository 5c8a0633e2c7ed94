package tracer

import (
	"errors"

	"rtrace-bpf/tracer/order"
)

// ErrEnded says that the recording has ended.
var ErrEnded = errors.New("the recording has ended")

// mark is one that the user sets.
type mark struct {
	name string
	set  chan struct{} // closed when it has its place
}

// Mark puts a mark into the trace: a context without a bit, which no call is in. When
// it returns, what the process does from then on comes behind the mark. Any goroutine
// may call it while ReadRecord is being called. The error is ErrEnded when the trace
// goes no further.
func (t *Tracer) Mark(name string) error {
	m := mark{name: name, set: make(chan struct{})}
	select {
	case t.collector.marks <- m:
	case <-t.collector.ended:
		return ErrEnded
	}
	<-m.set // the collector has it, and does not wait before it is set
	return nil
}

// takeMarks places the marks that wait.
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
