package collector

import (
	"time"

	"rtrace-bpf/tracer/order"
)

// losses reads the kernel's counters about once a second, and adds what they grew by to
// the order of events.
type losses struct {
	counters   *order.LossCounters
	read       uint64 // when the counters were last read
	before     uint64 // time up to which losses were read
	unfinished uint64 // number of rings that the collector gave up
}

// due reports whether it is time to read the counters, and notes that they are read.
func (l *losses) due() bool {
	now := order.Clock()
	if now-l.read <= uint64(time.Second) && l.read != 0 {
		return false
	}
	l.read = now
	return true
}

// add adds the counts since the last call to the order of events, at time. Lost
// notifications of the dynamic loader are no loss yet: records has an audit find out what
// they were about.
func (l *losses) add(time uint64, to *outlet, records *processRecords) error {
	grown, err := l.counters.Grown()
	if err != nil {
		return err
	}
	work, err := l.counters.Done()
	if err != nil {
		return err
	}
	to.addSide(&order.Side{Kind: order.SideWork, Time: time, Work: work})
	if grown[order.LossSideband] > 0 {
		records.doubt(l.before)
		grown[order.LossSideband] = 0
	}
	l.before = time
	grown[order.LossUnfinished] += l.unfinished
	l.unfinished = 0
	grown[order.LossLate] += to.takeLate()
	for reason, n := range grown {
		if n != 0 {
			to.addSide(&order.Side{Kind: order.SideDrops, Time: time, Lost: n, Reason: order.Loss(reason)})
		}
	}
	return nil
}
