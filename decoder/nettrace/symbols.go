package nettrace

import (
	"bytes"

	"rtrace-bpf/trace"
)

// symbols holds methods back until their module is known, because the names of modules
// come later.
type symbols struct {
	modules   map[moduleKey]string
	waiting   []method
	delivered int // number of delivered methods
}

type moduleKey struct{ process, id uint64 }

type method struct {
	module   moduleKey
	function trace.Function
}

// Limits of the modules and methods that are held. Beyond them, methods lack the names
// of their modules.
const (
	maxModules = 1 << 16
	maxMethods = 1 << 18
)

// method handles an event with the place of a method's code.
func (d *Reader) method(e *Event, _ *trace.Record, _ *plan) error {
	c := cursor{b: e.Payload}
	c.u64()
	key := moduleKey{e.Thread.Process, c.u64()}
	start, size := c.u64(), uint64(c.u32())
	c.u64()
	space, name, signature := c.raw16(), c.raw16(), c.raw16()
	if c.err != nil {
		return c.err
	}
	if start == 0 || size == 0 || start+size < start {
		return errNoRecord // not compiled
	}
	b := appendUTF16(d.format.text[:0], space)
	if len(b) > 0 && len(name) > 0 {
		b = append(b, '.')
	}
	b = appendUTF16(b, name)
	b = appendParameters(b, signature)
	d.format.text = b
	m := method{key, trace.Function{Name: string(b), Start: start, End: start + size}}
	if module, ok := d.symbols.modules[key]; ok {
		m.function.Module = module
		d.pushFunction(&m)
		return errNoRecord
	}
	if len(d.symbols.waiting) >= maxMethods {
		d.pushFunction(&m)
		return errNoRecord
	}
	d.symbols.waiting = append(d.symbols.waiting, m)
	return errNoRecord
}

// appendParameters appends the parameters in a signature, as "instance void (int32)".
func appendParameters(b, signature []byte) []byte {
	if i := bytes.Index(signature, []byte("(\x00")); i >= 0 && i%2 == 0 {
		return appendUTF16(b, signature[i:])
	}
	return b
}

func (d *Reader) pushFunction(m *method) { m.record(d.push(trace.KindFunction)) }

func (m *method) record(rec *trace.Record) {
	rec.Kind, rec.Time, rec.TID, rec.CPU = trace.KindFunction, 0, 0, 0
	rec.PID = int32(m.module.process)
	rec.Function = m.function
}

// next delivers the next waiting method, at the end of the stream.
func (s *symbols) next(rec *trace.Record) bool {
	if s.delivered == len(s.waiting) {
		return false
	}
	m := &s.waiting[s.delivered]
	s.delivered++
	m.function.Module = s.modules[m.module]
	m.record(rec)
	return true
}

func (d *Reader) module(e *Event, _ *trace.Record, _ *plan) error {
	return d.addModule(e, 8+4+4)
}

func (d *Reader) domainModule(e *Event, _ *trace.Record, _ *plan) error {
	return d.addModule(e, 8+8+4+4)
}

// addModule remembers the path of a module. skip is the number of bytes between its id
// and the path.
func (d *Reader) addModule(e *Event, skip int) error {
	c := cursor{b: e.Payload}
	key := moduleKey{e.Thread.Process, c.u64()}
	c.bytes(skip)
	il, native := c.text16(), c.text16()
	if c.err != nil {
		return c.err
	}
	if il == "" {
		il = native
	}
	s := &d.symbols
	if s.modules == nil {
		s.modules = make(map[moduleKey]string)
	}
	if _, known := s.modules[key]; il != "" && (known || len(s.modules) < maxModules) {
		s.modules[key] = il
	}
	return errNoRecord
}
