package main

import (
	"rtrace-bpf/decoder/sptext"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// frameEditor names the frames of a text.
type frameEditor struct {
	resolver *resolve.Resolver
	replace  bool
	process  *resolve.Process // nil: to be asked for
}

var _ sptext.Editor = (*frameEditor)(nil)

func (e *frameEditor) Observe(r *trace.Record) {
	e.resolver.Observe(r)
	e.process = nil
}

func (e *frameEditor) Filter(old string) string { return resolve.WithFilter(old) }

func (e *frameEditor) Frame(addr uint64, old string) string {
	if e.process == nil {
		e.process = e.resolver.Process(0)
	}
	return e.process.Better(addr, old, e.replace)
}
