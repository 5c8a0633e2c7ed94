package main

import (
	"context"
	"slices"
	"strings"
	"time"

	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/cli"
	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// legacyOrigin is the origin that the last original post-processor writes. Its version
// number was not kept up to date.
const legacyOrigin = "sp-rtrace 1.8"

// environment is the output before the calls, and facts about the whole trace that are
// needed before the first call is written.
type environment struct {
	sort      sorter
	header    trace.Header
	processes []*trace.Record
	files     []*trace.Record
	heap      *trace.Record
	front     []*trace.Record // tracing modules and the comments before all declarations
	contexts  []*trace.Record
	resources []trace.Resource
	mappings  []*trace.Record
	bounds    idBounds
	frees     *leak.Unmatched // nil if unmatched frees are not counted here
	calls     bool            // there was a call
	hadLeaks  bool            // the input was already filtered by leaks
	seen      bool            // there was a record
	timestamp time.Time       // legacy: of a text's header, in any year
}

// idBounds is the lowest and the highest id of an allocation.
type idBounds struct{ low, high uint64 }

func (b *idBounds) add(c *trace.Call) {
	if c.Op == trace.OpAlloc || c.Op == trace.OpMove {
		b.low, b.high = min(b.low, c.ID), max(b.high, c.ID)
	}
}

// begin prepares the environment; count selects counting of unmatched frees.
func (e *environment) begin(legacy, count bool) {
	*e = environment{sort: sorter{legacy: legacy}, bounds: idBounds{low: ^uint64(0)}}
	if count && !legacy {
		e.frees = leak.NewUnmatched()
	}
}

// environmentReader passes on the records of a trace and shows them to env.
type environmentReader struct {
	ctx context.Context
	src trace.Reader
	env *environment
	n   int

	// front adds the passing records to the environment, count counts their frees.
	front, count bool
}

func (r *environmentReader) ReadRecord(rec *trace.Record) error {
	if err := r.src.ReadRecord(rec); err != nil {
		return err
	}
	if r.n++; r.n%interval == 0 && r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if r.front {
		r.env.add(rec)
	}
	if r.count && r.env.frees != nil {
		r.env.frees.Add(rec)
	}
	return nil
}

// sorter separates the records of the environment from those that stay between the calls.
// Pass it the records of a trace in order.
type sorter struct {
	legacy     bool
	process    bool
	registries bool // the front of the trace has ended
}

// environment reports whether r belongs to the environment.
func (s *sorter) environment(r *trace.Record) bool {
	switch r.Kind {
	case trace.KindHeader, trace.KindAttachment, trace.KindHeapInfo, trace.KindTracerModule:
		return true
	case trace.KindContext, trace.KindResource, trace.KindMapping, trace.KindFunction:
		s.registries = true
		return true
	case trace.KindProcess:
		// Further processes become comments.
		first := !s.process
		s.process = true
		return first || s.legacy
	case trace.KindComment:
		return !s.registries && !s.legacy
	}
	s.registries = true
	return false
}

func (e *environment) add(r *trace.Record) {
	e.seen = true
	if r.Kind == trace.KindCall {
		e.calls, e.sort.registries = true, true
		e.bounds.add(&r.Call)
		return
	}
	if !e.sort.environment(r) {
		return
	}
	switch r.Kind {
	case trace.KindHeader:
		if e.header.Format == "" {
			e.header = r.Header
			e.hadLeaks = strings.Contains(r.Header.Filter, wire.FilterLeaks)
		}
	case trace.KindProcess:
		e.processes = append(e.processes, r.Clone())
	case trace.KindAttachment:
		e.files = append(e.files, r.Clone())
	case trace.KindHeapInfo:
		e.heap = r.Clone() // the last counts
	case trace.KindTracerModule, trace.KindComment:
		if !e.regenerated(r) {
			e.front = append(e.front, r.Clone())
		}
	case trace.KindContext:
		e.contexts = append(e.contexts, r.Clone())
	case trace.KindResource:
		if e.sort.legacy || !slices.Contains(e.resources, r.Resource) {
			e.resources = append(e.resources, r.Resource)
		}
	case trace.KindMapping, trace.KindFunction:
		e.mappings = append(e.mappings, r.Clone())
	}
}

func (e *environment) empty() bool { return !e.seen }

func (e *environment) hasProcess() bool { return len(e.processes) > 0 }

// pid returns the id of the process in the trace's name.
func (e *environment) pid() int32 {
	if len(e.processes) == 0 {
		return 0
	}
	return e.processes[len(e.processes)-1].PID
}

// regenerated reports whether r is a comment of an earlier run that this run writes again.
// If the frees were filtered out, the old one is kept.
func (e *environment) regenerated(r *trace.Record) bool {
	return r.Kind == trace.KindComment && !e.sort.legacy && !e.hadLeaks && strings.HasPrefix(r.Comment, wire.UnmatchedPrefix)
}

// unmatched returns the number of frees without allocation, if it is counted here.
func (e *environment) unmatched() uint64 {
	if e.frees == nil {
		return 0
	}
	return e.frees.Count()
}

// filters sets the filter value of the header. Filters that were applied stay, except that
// the calls of a compressed trace are separated again unless compress is set.
func (e *environment) filters(leaks, compress, resolve bool) {
	old := e.header.Filter
	var words []string
	if leaks || strings.Contains(old, wire.FilterLeaks) {
		words = append(words, wire.FilterLeaks)
	}
	if compress {
		words = append(words, wire.FilterCompress)
	}
	if resolve || strings.Contains(old, wire.FilterResolve) {
		words = append(words, wire.FilterResolve)
	}
	e.header.Filter = strings.Join(words, "|")
}

// origin sets the origin of a trace that does not name its own.
func (e *environment) origin(legacy bool) {
	switch {
	case legacy:
		e.header.Origin = legacyOrigin
	case e.header.Origin == "":
		e.header.Origin = "rtrace-bpf " + cli.BuildVersion()
	}
}

// timeText returns the time of the header line if the record cannot hold it.
func (e *environment) timeText() string {
	if e.timestamp.IsZero() {
		return ""
	}
	return encoder.FormatTime(e.timestamp, nil)
}

// write writes the environment in the order of the original. If a text has a single
// resource, its number is 1, and calls do not name it.
func (e *environment) write(w *postprocOutput) error {
	var records []*trace.Record
	records = append(records, &trace.Record{Kind: trace.KindHeader, Header: e.header})
	if n := len(e.processes); n > 0 && e.sort.legacy {
		records = append(records, e.processes[n-1])
	} else {
		records = append(records, e.processes...)
	}
	records = append(records, e.files...)
	if e.heap == nil && w.text == nil {
		e.heap = heapOfText(e.front)
	}
	if e.heap != nil {
		if w.text != nil {
			w.text.SetHeapBounds(e.bounds.low, e.bounds.high)
		}
		records = append(records, e.heap)
	}
	records = append(records, e.front...)
	records = append(records, e.contexts...)
	for _, r := range e.resources {
		if len(e.resources) == 1 && w.text != nil {
			r.ID = 1
		}
		records = append(records, &trace.Record{Kind: trace.KindResource, Resource: r})
	}
	records = append(records, e.mappings...)
	for _, r := range records {
		if err := w.WriteRecord(r); err != nil {
			return err
		}
	}
	return nil
}
