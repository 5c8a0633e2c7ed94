package mptrace

import (
	"bufio"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// Printer enters the events of one stream in its accounts and prints them. What
// is nil is not printed. Writers may be the same one; their owner flushes them.
type Printer struct {
	Accounts Accounts

	Text  *bufio.Writer // of the table and the statistics
	Table *Table

	HATF     *HATF
	HATFTo   *bufio.Writer
	HATFName string // of the trace, as the file says it

	Simulation   *Simulation
	SimulationTo *bufio.Writer

	entry Entry
}

// Begin prints what stands in front of the events.
func (p *Printer) Begin() error {
	if p.Table != nil {
		if _, err := p.Text.Write(p.Table.AppendHeading(p.Text.AvailableBuffer())); err != nil {
			return err
		}
	}
	if p.HATF != nil {
		if _, err := p.HATFTo.Write(p.HATF.AppendHeader(p.HATFTo.AvailableBuffer(), p.HATFName)); err != nil {
			return err
		}
	}
	if p.Simulation != nil {
		if _, err := p.SimulationTo.Write(p.Simulation.AppendBegin(p.SimulationTo.AvailableBuffer())); err != nil {
			return err
		}
	}
	return nil
}

// Event enters an event and prints it. time is in nanoseconds since the trace
// began, 0 without a clock. The entry is valid until the next Event.
func (p *Printer) Event(e *wire.Event, time int64) (*Entry, error) {
	n := &p.entry
	p.Accounts.Add(e, n)
	if !n.Done {
		return n, nil
	}
	if p.Table != nil {
		if _, err := p.Text.Write(p.Table.AppendRow(p.Text.AvailableBuffer(), n, &e.Source)); err != nil {
			return n, err
		}
	}
	if p.HATF != nil {
		if _, err := p.HATFTo.Write(p.HATF.AppendEvent(p.HATFTo.AvailableBuffer(), n, e.Source.Thread, time)); err != nil {
			return n, err
		}
	}
	if p.Simulation != nil {
		if _, err := p.SimulationTo.Write(p.Simulation.AppendEvent(p.SimulationTo.AvailableBuffer(), n)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// ThreadEnd prints that a thread ended.
func (p *Printer) ThreadEnd(thread uint64) error {
	if p.HATF == nil || !p.HATF.Full {
		return nil
	}
	_, err := p.HATFTo.Write(p.HATF.AppendThreadEnd(p.HATFTo.AvailableBuffer(), thread))
	return err
}

// End prints what stands behind the events, the statistics if they are wanted.
func (p *Printer) End(statistics bool) error {
	if p.Simulation != nil {
		if _, err := p.SimulationTo.Write(p.Simulation.AppendEnd(p.SimulationTo.AvailableBuffer())); err != nil {
			return err
		}
	}
	if !statistics {
		return nil
	}
	text := p.Text.AvailableBuffer()
	if p.Table != nil {
		text = append(text, '\n')
	}
	_, err := p.Text.Write(AppendStatistics(text, p.Accounts))
	return err
}
