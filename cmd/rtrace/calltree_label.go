package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/printable"
	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// origins passes on the records of a trace and keeps where it comes from.
type origins struct {
	src     trace.Reader
	header  trace.Header
	process trace.Process
	pid     int32
	pids    map[int32]struct{}
}

// ReadRecord implements trace.Reader.
func (o *origins) ReadRecord(r *trace.Record) error {
	if err := o.src.ReadRecord(r); err != nil {
		return err
	}
	switch r.Kind {
	case trace.KindHeader:
		if o.header == (trace.Header{}) {
			o.header = r.Header
		}
	case trace.KindProcess:
		if o.pids == nil {
			o.pids = make(map[int32]struct{})
			o.process, o.pid = r.Process, r.PID
		}
		o.pids[r.PID] = struct{}{}
	}
	return nil
}

// label returns the line about the trace below a graph's title: the informative keys of the
// original's header line, sorted.
func (o *origins) label(leaks, resolved bool) string {
	var parts []string
	add := func(key, value string) {
		if value != "" {
			parts = append(parts, key+"="+printable.Name(value))
		}
	}
	add(wire.KeyArch, o.header.Arch)
	add(wire.KeyFilter, filters(o.header.Filter, leaks, resolved))
	wall := o.header.WallTime
	if o.process.WallTime != 0 {
		wall = o.process.WallTime
	}
	if n := len(o.pids); n > 1 {
		add("processes", fmt.Sprint(n))
	} else {
		if o.pid != 0 {
			add(wire.KeyPID, fmt.Sprint(o.pid))
		}
		add(wire.KeyProcess, o.process.Name)
	}
	if wall != 0 {
		add(wire.KeyTimestamp, sptext.FormatTime(time.Unix(0, wall), nil))
	}
	return strings.Join(parts, ", ")
}

// filters adds to a list of applied filters.
func filters(list string, leaks, resolved bool) string {
	var have []string
	if list != "" {
		have = strings.Split(list, "|")
	}
	if leaks && !slices.Contains(have, wire.FilterLeaks) {
		have = slices.Insert(have, 0, wire.FilterLeaks)
	}
	if resolved && !slices.Contains(have, wire.FilterResolve) {
		have = append(have, wire.FilterResolve)
	}
	return strings.Join(have, "|")
}
