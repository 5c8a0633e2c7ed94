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
}

var _ sptext.Editor = (*frameEditor)(nil)

func (e *frameEditor) Observe(r *trace.Record) { e.resolver.Observe(r) }

func (e *frameEditor) Filter(old string) string { return resolve.WithFilter(old) }

func (e *frameEditor) Frame(addr uint64, old string) string {
	return e.resolver.Process(0).Better(addr, old, e.replace)
}

// mappingsEditor changes nothing and shows mappings to a resolver.
type mappingsEditor struct {
	resolver *resolve.Resolver
}

var _ sptext.Editor = (*mappingsEditor)(nil)

func (e *mappingsEditor) Observe(r *trace.Record) {
	if r.Kind == trace.KindMapping {
		e.resolver.Observe(r)
	}
}

func (e *mappingsEditor) Filter(old string) string { return old }

func (e *mappingsEditor) Frame(_ uint64, old string) string { return old }
