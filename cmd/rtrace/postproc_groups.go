package main

import (
	"io"

	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// writeGroups writes the calls stack by stack. Other records have no place between them, and
// come after them.
func (p *postprocess) writeGroups(w *encoder.Writer, c *postprocContent) error {
	if c.err != io.EOF {
		p.ending = c.err
	}
	var (
		call  trace.Record
		last  lastCall
		named = p.named(&last)
	)
	for n, g := range c.groups.Sorted(filter.Orders[p.sort]) {
		if n%1024 == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		err := c.groups.Calls(g, &call, func(r *trace.Record) error {
			if err := p.comments.write(w, r); err != nil {
				return err
			}
			return w.WriteGrouped(r)
		})
		if err != nil {
			return err
		}
		last.stack, last.pid = c.groups.Stack(g)
		if p.chosen.Shallow {
			filter.Cut(&last.stack, p.depth)
		}
		if err := named.ReadRecord(&call); err != nil {
			return err
		}
		if err := w.WriteStack(&call.Call.Stack, g.Blocks, g.Bytes); err != nil {
			return err
		}
	}
	if err := p.comments.write(w, nil); err != nil {
		return err
	}
	for _, r := range c.others {
		if err := w.WriteRecord(r); err != nil {
			return err
		}
	}
	return nil
}

// lastCall is a reader of one call again and again. Only its stack matters.
type lastCall struct {
	stack trace.Stack
	pid   int32
}

func (l *lastCall) ReadRecord(r *trace.Record) error {
	r.Kind, r.PID = trace.KindCall, l.pid
	r.Call = trace.Call{Stack: l.stack}
	return nil
}
