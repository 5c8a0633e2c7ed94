package recording

import (
	"context"
	"errors"

	"rtrace-bpf/internal/recording/dotnet"
	"rtrace-bpf/internal/recording/memory"
	"rtrace-bpf/internal/recording/naming"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/swapevents"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// chain is the way of records to the trace: writers that add to them, name them or keep
// them until the end.
type chain struct {
	first      trace.Writer          // except for machine
	machine    *swapevents.Machine   // adds the state of the machine before first; nil for nothing
	translator swapevents.Translator // makes messages of what the process does
	delayed    *output.Delayed       // keeps the records until the end; nil if nothing does
	functions  *naming.Functions     // names functions for the encoder; nil if it needs none
	events     *dotnet.Events        // of the .NET runtime; nil for none
	perfMap    *dotnet.PerfMap       // names what a .NET runtime has compiled; nil for nothing
}

// open opens the output and builds the chain to it. After an error nothing is left.
func (x *session) open(ctx context.Context) (err error) {
	o := &x.of.options
	if o.Swap != nil {
		live := func() uint64 { return x.probes.tracer.LiveBytes() }
		if x.chain.machine, err = swapevents.NewMachine(x.pid, *o.Swap, live, o.Line.Print); err != nil {
			x.chain.machine = nil
			return err
		}
	}
	if o.Watch != nil {
		if x.out, err = output.Nowhere(x.pid); err != nil {
			return &outputError{err}
		}
		x.chain.first = o.Watch.Writer(x.pid)
		if o.Excerpts != nil {
			x.chain.first = o.Excerpts.Writer(x.pid, x.chain.first)
		}
		return nil
	}
	if x.out, err = output.Open(ctx, &o.Output, x.pid); err != nil {
		x.chain.stop()
		return &outputError{err}
	}
	if err = x.openAll(ctx); err != nil {
		return &outputError{errors.Join(err, x.discard())}
	}
	return nil
}

// openAll opens what is written next to the trace, and builds the chain.
func (x *session) openAll(ctx context.Context) (err error) {
	o := &x.of.options
	if o.Pages {
		if x.extras.pages, err = memory.OpenPages(x.pid, x.out, o.Line); err != nil {
			x.extras.pages = nil
			return err
		}
	}
	if o.Runtime != nil {
		if x.chain.events, err = dotnet.OpenEvents(ctx, x.pid, *o.Runtime, o.Line, x.out.TempDir()); err != nil {
			x.chain.events = nil
			return err
		}
	}
	x.sums = newSums(x.pid, &x.of.options)
	if err = x.openSnapshots(); err != nil {
		x.extras.snapshots = nil
		return err
	}
	if o.Output.Unwritten {
		x.chain.first = output.Nothing{}
		x.chain.nameCompiled()
		return nil
	}
	var kept *spool.File
	if o.Runtime != nil || o.Names && x.out.Regular() {
		if kept, err = x.out.Keep(); err != nil {
			return err
		}
	}
	encoding := o.Encoding
	if o.Format == "nettrace" {
		room := -1
		if o.Output.MaxSize > 0 {
			room = output.Reserve / 2
		}
		x.chain.functions = naming.NewFunctions(x.root, room, o.Hurry)
		encoding.Nettrace.Symbols = x.chain.functions
	}
	w, err := x.out.Encode(o.Format, encoding)
	if err != nil {
		return err
	}
	x.build(w, kept)
	return x.openLeaks()
}

// build builds the chain to a writer. kept is not nil if the records are kept until the
// end.
func (x *session) build(w *output.Writer, kept *spool.File) {
	o := &x.of.options
	c := &x.chain
	w.Syscalls, w.Functions = c.translator.Syscalls, c.translator.Functions
	if c.machine != nil {
		w.Processors = c.machine.Processors()
	}
	c.first = w
	switch {
	case kept != nil:
		c.delayed = &output.Delayed{File: kept, To: w, Path: x.out.Path(), Line: o.Line, Hurry: o.Hurry, Turn: &x.of.naming}
		c.delayed.Names = func(from trace.Reader) trace.Reader { return naming.Callers(from, x.root, o.Callers) }
		if c.events != nil {
			c.delayed.Names, c.delayed.Hurry = c.events.Merge, nil
		}
		c.first = c.delayed
	case o.Names:
		c.first = naming.NewOnline(w, x.root, o.Callers)
	case c.functions != nil:
		c.first = &naming.Closing{Writer: w, Turn: &x.of.naming}
	}
	c.nameCompiled()
	if c.machine != nil {
		c.machine.To(c.first)
	}
}

// nameCompiled puts the names of what a .NET runtime has compiled before first.
func (c *chain) nameCompiled() {
	if c.perfMap != nil {
		c.perfMap.Writer = c.first
		c.first = c.perfMap
	}
}

// write writes a record of the session.
func (c *chain) write(rec *trace.Record) error {
	if c.machine != nil {
		return c.machine.WriteRecord(rec)
	}
	return c.first.WriteRecord(rec)
}

// stop ends what adds records by itself.
func (c *chain) stop() {
	if c.machine != nil {
		c.machine.Stop()
	}
}

// end ends the events of the .NET runtime, when the tracer has ended. hurry is closed when
// names are not to be waited for.
func (c *chain) end(hurry <-chan struct{}) error {
	if c.functions != nil {
		c.functions.Hurry = hurry
	}
	if c.events != nil {
		return c.events.End(hurry)
	}
	if c.delayed != nil {
		c.delayed.Hurry = hurry
	}
	return nil
}

// finish completes the files, after an error as far as possible. It returns what has gone
// wrong since.
func (x *session) finish() error {
	err := errors.Join(x.chain.first.Close(), x.out.Close())
	x.extras.close()
	if x.chain.events != nil {
		err = errors.Join(err, x.chain.events.Release())
	}
	return err
}

// discard removes the files: nothing was recorded.
func (x *session) discard() error {
	x.chain.stop()
	x.extras.close()
	x.sums.close()
	err := x.out.Discard()
	if x.chain.events != nil {
		err = errors.Join(err, x.chain.events.Discard())
	}
	return errors.Join(err, x.dropLeaks())
}
