package mptrace

import (
	"bufio"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// Printer counts the events of one stream and prints them. Outputs that are nil
// are not printed. Several writers may be the same one; the caller flushes
// them.
type Printer struct {
	Accounts Accounts

	Text  *bufio.Writer // for the table and the statistics
	Table *Table

	HATF     *HATF
	HATFTo   *bufio.Writer
	HATFName string // name of the trace in the file

	Simulation   *Simulation
	SimulationTo *bufio.Writer

	entry Entry
}

// Begin prints the texts before the events.
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

// Event counts an event and prints it. time is in nanoseconds since the start
// of the trace, 0 without a clock. The entry is valid until the next Event.
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

// ThreadEnd prints the end of a thread.
func (p *Printer) ThreadEnd(thread uint64) error {
	if p.HATF == nil || !p.HATF.Full {
		return nil
	}
	_, err := p.HATFTo.Write(p.HATF.AppendThreadEnd(p.HATFTo.AvailableBuffer(), thread))
	return err
}

// End prints the texts after the events, including the statistics if requested.
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
