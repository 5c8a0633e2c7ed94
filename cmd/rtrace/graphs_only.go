package main

import (
	"path"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// onlyReader passes on the allocations whose stack has a function or library with the
// requested prefix, the frees of their blocks, and all other records. It does not handle
// moves. An allocation that it leaves out ends a live block at the same address.
type onlyReader struct {
	src    trace.Reader
	prefix string
	framer sites.Framer
	frames []sites.Frame
	blocks *live.Table // with its number of references
}

func newOnlyReader(src trace.Reader, prefix string, framer sites.Framer) *onlyReader {
	return &onlyReader{src: src, prefix: prefix, framer: framer, blocks: live.New()}
}

// ReadRecord implements trace.Reader.
func (o *onlyReader) ReadRecord(r *trace.Record) error {
	for {
		if err := o.src.ReadRecord(r); err != nil {
			return err
		}
		switch r.Kind {
		case trace.KindCall:
			if !o.call(r) {
				continue
			}
		case trace.KindExec:
			o.blocks.Clear()
		}
		return nil
	}
}

// call reports whether a call is passed on.
func (o *onlyReader) call(r *trace.Record) bool {
	c := &r.Call
	switch {
	case c.Op == trace.OpAlloc && o.has(r):
		if !o.blocks.Retain(c.Resource, c.ID) {
			o.blocks.Insert(c.Resource, c.ID, 0, 0)
		}
		return true
	case c.Op == trace.OpFree:
		_, ok := o.blocks.Release(c.Resource, c.ID)
		return ok
	case c.Op == trace.OpAlloc:
		_, ok := o.blocks.Remove(c.Resource, c.ID)
		c.Op, c.Size, c.Stack, c.Args = trace.OpFree, 0, trace.Stack{}, nil
		return ok
	}
	return false
}

// has reports whether a call was made through a requested function or library.
func (o *onlyReader) has(r *trace.Record) bool {
	if o.prefix == "" {
		return true
	}
	o.frames = o.framer.Append(o.frames[:0], r.PID, &r.Call.Stack, &r.Call.Caller, 0)
	for i := range o.frames {
		f := &o.frames[i]
		if strings.HasPrefix(f.Function, o.prefix) || strings.HasPrefix(f.Module, o.prefix) || strings.HasPrefix(path.Base(f.Module), o.prefix) {
			return true
		}
	}
	return false
}
