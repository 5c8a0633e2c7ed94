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

// add adds a method. It returns the method if its module is known, or if there is no room,
// so that it is to be delivered now.
func (s *symbols) add(m *method) (now *method) {
	if module, ok := s.modules[m.module]; ok {
		m.function.Module = module
		return m
	}
	if len(s.waiting) >= maxMethods {
		return m
	}
	s.waiting = append(s.waiting, *m)
	return nil
}

// appendParameters appends the parameters in a signature, as "instance void (int32)".
func appendParameters(b, signature []byte) []byte {
	if i := bytes.Index(signature, []byte("(\x00")); i >= 0 && i%2 == 0 {
		return appendUTF16(b, signature[i:])
	}
	return b
}

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

// addModule remembers the path of a module. skip is the number of bytes between its id
// and the path.
func (s *symbols) addModule(e *Event, skip int) error {
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
	if s.modules == nil {
		s.modules = make(map[moduleKey]string)
	}
	if _, known := s.modules[key]; il != "" && (known || len(s.modules) < maxModules) {
		s.modules[key] = il
	}
	return errNoRecord
}
