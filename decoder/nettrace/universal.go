package nettrace

import (
	"encoding/json"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// mappings holds descriptions of mappings by id until the mappings follow.
type mappings struct {
	buildIDs map[moduleKey]string
	paths    map[moduleKey]string // of mappings, for their symbols
}

// systemProcess handles an event about a traced process.
func (d *Reader) systemProcess(e *Event, rec *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	inside := c.uvarint()
	name := c.counted()
	c.counted()
	if c.err != nil {
		return c.err
	}
	d.start(rec, e, trace.KindProcess)
	if rec.PID == 0 {
		rec.PID = int32(inside)
	}
	rec.TID, rec.CPU = 0, 0
	rec.Process = trace.Process{Name: name, WallTime: d.wallTime(), Depth: -1}
	if rec.Process.WallTime != 0 { // that of the record
		rec.Process.WallTime += rec.Time - d.s.info.Nanoseconds(d.s.info.Sync)
	}
	d.process = name
	return nil
}

func (d *Reader) systemExit(e *Event, rec *trace.Record, _ *plan) error {
	d.start(rec, e, trace.KindExit)
	rec.Exit.Process = true
	return nil
}

func (d *Reader) systemMapping(e *Event, rec *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	id := c.uvarint()
	m := trace.Mapping{Start: c.uvarint(), End: c.uvarint(), Offset: c.uvarint(), Path: c.counted()}
	described := c.uvarint()
	if c.err != nil {
		return c.err
	}
	if m.Start >= m.Offset {
		m.Base = m.Start - m.Offset
	} else {
		m.Offset = 0
	}
	process := e.Thread.Process
	if d.mappings.paths == nil {
		d.mappings.paths = make(map[moduleKey]string)
	}
	if len(d.mappings.paths) < maxModules {
		d.mappings.paths[moduleKey{process, id}] = m.Path
	}
	if buildID := d.mappings.buildIDs[moduleKey{process, described}]; described != 0 && buildID != "" {
		file := d.out.push(trace.KindModule)
		file.Time, file.PID = d.s.info.Nanoseconds(e.Time), int32(process)
		file.Module = trace.Module{Path: m.Path, BuildID: buildID}
	}
	d.start(rec, e, trace.KindMapping)
	rec.TID, rec.CPU = 0, 0
	rec.Mapping = m
	return nil
}

// systemMetadata handles the description of the file of a later mapping.
func (d *Reader) systemMetadata(e *Event, _ *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	id := c.uvarint()
	symbols := c.bytes(int(c.u16()))
	c.counted()
	if c.err != nil {
		return c.err
	}
	var file struct {
		BuildID string `json:"build_id"`
	}
	if json.Unmarshal(symbols, &file) != nil || file.BuildID == "" {
		return errNoRecord // it is for symbols of another kind, or for none
	}
	if d.mappings.buildIDs == nil {
		d.mappings.buildIDs = make(map[moduleKey]string)
	}
	if len(d.mappings.buildIDs) < maxModules {
		d.mappings.buildIDs[moduleKey{e.Thread.Process, id}] = file.BuildID
	}
	return errNoRecord
}

func (d *Reader) systemSymbol(e *Event, rec *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	c.uvarint()
	mapping := moduleKey{e.Thread.Process, c.uvarint()}
	f := trace.Function{Start: c.uvarint(), End: c.uvarint(), Name: c.counted()}
	if c.err != nil {
		return c.err
	}
	f.Module = d.mappings.paths[mapping]
	d.start(rec, e, trace.KindFunction)
	rec.TID, rec.CPU = 0, 0
	rec.Function = f
	return nil
}

// universalHandler chooses by name, because ids have no meaning.
func universalHandler(m *wire.Metadata) handler {
	if m.Name == wire.EventMalloc {
		return (*Reader).universalMalloc
	}
	return (*Reader).universalEvent
}

// universalEvent makes a sample with the event's value as its weight.
func (d *Reader) universalEvent(e *Event, rec *trace.Record, p *plan) error {
	c := cursor{b: e.Payload}
	value := c.uvarint()
	if c.err != nil {
		return c.err
	}
	d.start(rec, e, trace.KindSample)
	rec.Sample = trace.Sample{Name: p.name, Weight: value, Stack: d.stack(e)}
	return nil
}

// universalMalloc makes an allocation of as many bytes as the event's value.
func (d *Reader) universalMalloc(e *Event, rec *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	size := c.uvarint()
	if c.err != nil {
		return c.err
	}
	d.call(rec, e, wire.EventMalloc).Size = size
	return nil
}
