package nettrace

import "encoding/binary"

// process is the process of a stream.
type process struct {
	pid     int32
	pointer int // bytes of an address: 4 or 8
}

// hasAddress reports whether an address fits.
func (p *process) hasAddress(v uint64) bool { return p.pointer == 8 || v>>32 == 0 }

// appendAddress appends an address in the size of the process.
func (p *process) appendAddress(dst []byte, v uint64) []byte {
	if p.pointer == 4 {
		return binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(dst, v)
}
