package reference

import "encoding/binary"

// Memory is the memory of a process.
type Memory interface {
	// Word returns the eight bytes at addr, which may have any alignment, as a little-endian
	// number, and whether all of them could be read.
	Word(addr uint64) (uint64, bool)
}

// Raw is a copy of a piece of memory, such as the upper part of a stack.
type Raw struct {
	Addr uint64 // of the first byte
	Data []byte
}

// Word implements [Memory].
func (r Raw) Word(addr uint64) (uint64, bool) {
	at := addr - r.Addr // large if addr is below
	if len(r.Data) < 8 || at > uint64(len(r.Data)-8) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(r.Data[at:]), true
}

// Layers is several memories, such as the copy of a stack and the code of files. A word comes
// from the first one that contains all of it.
type Layers []Memory

// Word implements [Memory].
func (l Layers) Word(addr uint64) (uint64, bool) {
	for _, m := range l {
		if v, ok := m.Word(addr); ok {
			return v, true
		}
	}
	return 0, false
}

// narrow returns the n bytes at addr; n is 1 to 8. They may be the last readable ones.
func narrow(m Memory, addr uint64, n uint) (uint64, bool) {
	missing := 8 - n
	if v, ok := m.Word(addr); ok || missing == 0 {
		return v << (8 * missing) >> (8 * missing), ok
	}
	v, ok := m.Word(addr - uint64(missing))
	return v >> (8 * missing), ok
}
