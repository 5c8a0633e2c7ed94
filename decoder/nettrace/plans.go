package nettrace

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// plan is how the events of one kind are read.
type plan struct {
	// do makes a record of an event. It returns an error if the payload does not match.
	do      func(d *Reader, e *Event, rec *trace.Record, p *plan) error
	name    string
	fields  []wire.Field
	process bool // the event is about a process
	own     *ownPlan
}

var (
	errNoRecord = errors.New("no record")
	errFatal    = errors.New("the reference reader stops here")
)

type handler = func(d *Reader, e *Event, rec *trace.Record, p *plan) error

// handlers are for events that have a record of their own. More are chosen by the
// provider: see providers.
var handlers = map[eventKey]handler{
	{wire.ProviderRuntime, wire.RuntimeAllocationTick}:    (*Reader).allocationTick,
	{wire.ProviderRuntime, wire.RuntimeAllocationSampled}: (*Reader).allocationSampled,
	{wire.ProviderRuntime, wire.RuntimeMethodLoadVerbose}: (*Reader).method,
	{wire.ProviderRuntime, wire.RuntimeModuleLoad}:        (*Reader).module,
	{wire.ProviderRuntime, wire.RuntimeDomainModuleLoad}:  (*Reader).domainModule,
	{wire.ProviderRuntime, wire.RuntimeILToNativeMap}:     (*Reader).nativeMap,

	{wire.ProviderRundown, wire.RundownMethodStartVerbose}: (*Reader).method,
	{wire.ProviderRundown, wire.RundownMethodEndVerbose}:   (*Reader).method,
	{wire.ProviderRundown, wire.RundownModuleStart}:        (*Reader).module,
	{wire.ProviderRundown, wire.RundownModuleEnd}:          (*Reader).module,
	{wire.ProviderRundown, wire.RundownDomainModuleStart}:  (*Reader).domainModule,
	{wire.ProviderRundown, wire.RundownDomainModuleEnd}:    (*Reader).domainModule,
	{wire.ProviderRundown, wire.RundownILToNativeMapStart}: (*Reader).nativeMap,
	{wire.ProviderRundown, wire.RundownILToNativeMapEnd}:   (*Reader).nativeMap,

	{wire.ProviderSampler, wire.SamplerSample}: (*Reader).threadSample,

	{wire.ProviderSystem, wire.SystemExistingProcess}: (*Reader).systemProcess,
	{wire.ProviderSystem, wire.SystemProcessCreate}:   (*Reader).systemProcess,
	{wire.ProviderSystem, wire.SystemProcessExit}:     (*Reader).systemExit,
	{wire.ProviderSystem, wire.SystemMapping}:         (*Reader).systemMapping,
	{wire.ProviderSystem, wire.SystemSymbol}:          (*Reader).systemSymbol,
	{wire.ProviderSystem, wire.SystemMappingMetadata}: (*Reader).systemMetadata,
}

// providers choose the handler of an event by more than its id. nil means that of all
// other events.
var providers = map[string]func(m *wire.Metadata) handler{
	wire.ProviderUniverse: universalHandler,
	wire.ProviderOwn:      ownHandler,
}

// plans remembers how the events of each kind are read.
type plans struct {
	known       map[*wire.Metadata]*plan
	lastMeta    *wire.Metadata
	lastPlan    *plan
	pointerSize int // bytes
}

func newPlans(pointerSize int) plans {
	return plans{known: make(map[*wire.Metadata]*plan), pointerSize: pointerSize}
}

// of returns how an event with a description is read.
func (k *plans) of(m *wire.Metadata) *plan {
	if m == k.lastMeta {
		return k.lastPlan
	}
	p := k.known[m]
	if p == nil {
		p = newPlan(m, k.pointerSize)
		if len(k.known) >= maxMetadata {
			clear(k.known) // for descriptions that were forgotten
		}
		k.known[m] = p
	}
	k.lastMeta, k.lastPlan = m, p
	return p
}

func newPlan(m *wire.Metadata, pointerSize int) *plan {
	p := &plan{name: m.Name, fields: m.Fields}
	name, fields := fieldsOf(m, pointerSize)
	if p.name == "" {
		p.name = name
	}
	if len(p.fields) == 0 {
		p.fields = fields
	}
	p.do = handlers[eventKey{m.Provider, m.EventID}]
	if choose := providers[m.Provider]; choose != nil {
		p.do = choose(m)
	}
	if m.Provider == wire.ProviderOwn && p.do != nil {
		if p.own = newOwnPlan(m); p.own == nil {
			p.do = nil
		}
	}
	if p.do == nil {
		p.do = (*Reader).plainEvent
	}
	p.process = m.Provider == wire.ProviderSystem && m.EventID <= wire.SystemProcessCreate
	return p
}

// plainEvent makes a record of an event that has no record of its own.
func (d *Reader) plainEvent(e *Event, rec *trace.Record, p *plan) error {
	if len(p.fields) == 0 {
		d.raw(rec, e, p)
		return nil
	}
	d.start(rec, e, trace.KindEvent)
	args, err := d.format.args(d.args[:0], p.fields, e.Payload)
	d.args = args
	if err != nil {
		return err
	}
	d.args = appendContext(d.args, e)
	rec.Event = trace.Event{Provider: e.Meta.Provider, Name: p.name, ID: e.Meta.EventID, Args: d.args, Stack: d.stack(e)}
	d.commandLine(e, p)
	return nil
}

// commandLine delivers the process again if its name becomes known only now.
func (d *Reader) commandLine(e *Event, p *plan) {
	if e.Meta.Provider != wire.ProviderPipe || p.name != "ProcessInfo" || d.process != "" {
		return
	}
	for _, a := range d.args {
		if a.Name == "CommandLine" && a.Value != "" {
			d.process = a.Value
			rec := d.out.push(trace.KindProcess)
			rec.PID = int32(e.Thread.Process)
			rec.Process = trace.Process{Name: a.Value, WallTime: d.wallTime(), Depth: -1}
		}
	}
}

// raw makes a record of an event whose fields are unknown or do not match.
func (d *Reader) raw(rec *trace.Record, e *Event, p *plan) {
	d.start(rec, e, trace.KindEvent)
	d.args = appendContext(d.args[:0], e)
	rec.Event = trace.Event{
		Provider: e.Meta.Provider, Name: p.name, ID: e.Meta.EventID, Args: d.args, Data: e.Payload, Stack: d.stack(e),
	}
}

// appendContext appends what an event has besides its payload.
func appendContext(args []trace.Arg, e *Event) []trace.Arg {
	activity, related := e.Activity, e.Related
	if l := e.Labels; l != nil {
		activity, related = l.Activity, l.Related
		if l.TraceID != nil {
			args = append(args, trace.Arg{Name: "trace_id", Value: hex.EncodeToString(l.TraceID[:])})
		}
		if l.SpanID != 0 {
			args = append(args, trace.Arg{Name: "span_id", Value: strconv.FormatUint(l.SpanID, 16)})
		}
		for _, o := range l.Others {
			args = append(args, trace.Arg{Name: o.Key, Value: o.Value})
		}
	}
	if activity != nil {
		args = append(args, trace.Arg{Name: "activity_id", Value: guid(activity)})
	}
	if related != nil {
		args = append(args, trace.Arg{Name: "related_activity_id", Value: guid(related)})
	}
	return args
}

func guid(id *[16]byte) string {
	le := binary.LittleEndian
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", le.Uint32(id[:]), le.Uint16(id[4:]), le.Uint16(id[6:]), id[8:10], id[10:])
}
