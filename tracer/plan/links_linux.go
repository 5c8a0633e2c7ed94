package plan

import "rtrace-bpf/tracer/site"

// links knows which traced function an address in a file leads to.
type links struct {
	lib     *library
	names   map[uint64]string // of the traced functions, by address
	slots   slots
	text    *segment
	options site.Options
}

// target returns the name of the traced function at addr, or of the one that the PLT stub
// at addr leads to.
func (l *links) target(addr uint64) (string, bool) {
	if name, ok := l.names[addr]; ok {
		return name, true
	}
	if !l.text.has(addr) {
		return "", false
	}
	slot, ok := site.Stub(l.options, l.text.from(addr, site.StubSize), addr)
	if !ok {
		return "", false
	}
	return l.slot(slot)
}

// slot returns the name of the traced function that the GOT's pointer at addr leads to.
func (l *links) slot(addr uint64) (string, bool) {
	name, ok := l.slots[addr]
	if !ok {
		return "", false
	}
	sym, ok := l.lib.function(name) // name may be an alias
	if !ok {
		return "", false
	}
	name, ok = l.names[sym.Addr]
	return name, ok
}
