package filter

import (
	"encoding/binary"

	"rtrace-bpf/trace"
)

// packed is a call as it is packed: as its difference from the one before it,
// the first one from the zero packed.
type packed struct {
	seq, id, size     uint64
	time              int64
	function          uint32
	resource, context uint32
	pid               int32
	op                trace.Op
	args              bool
}

// The first byte: the operation in two bits, and what is not as before. Numbers
// of variable length follow: the differences of seq, time and id, the size, and
// what is not as before.
const (
	packedOps      = 3
	packedArgs     = 1 << 2
	packedFunction = 1 << 3
	packedResource = 1 << 4
	packedContext  = 1 << 5
	packedPID      = 1 << 6
)

// append packs a call behind p into b, which has room for maxPacked bytes, and
// makes it p.
func (p *packed) append(b []byte, c packed) []byte {
	head := byte(c.op) & packedOps
	if c.args {
		head |= packedArgs
	}
	if c.function != p.function {
		head |= packedFunction
	}
	if c.resource != p.resource {
		head |= packedResource
	}
	if c.context != p.context {
		head |= packedContext
	}
	if c.pid != p.pid {
		head |= packedPID
	}
	n := len(b)
	to := b[n : n+maxPacked]
	to[0] = head
	i := 1
	i += binary.PutVarint(to[i:], int64(c.seq-p.seq))
	i += binary.PutVarint(to[i:], c.time-p.time)
	i += binary.PutVarint(to[i:], int64(c.id-p.id))
	i += binary.PutUvarint(to[i:], c.size)
	if head&packedFunction != 0 {
		i += binary.PutUvarint(to[i:], uint64(c.function))
	}
	if head&packedResource != 0 {
		i += binary.PutUvarint(to[i:], uint64(c.resource))
	}
	if head&packedContext != 0 {
		i += binary.PutUvarint(to[i:], uint64(c.context))
	}
	if head&packedPID != 0 {
		i += binary.PutVarint(to[i:], int64(c.pid))
	}
	*p = c
	return b[:n+i]
}

// maxPacked is the most bytes that a call takes.
const maxPacked = 1 + 4*binary.MaxVarintLen64 + 4*binary.MaxVarintLen32

// next unpacks the call behind p, makes it p, and returns what follows it.
func (p *packed) next(b []byte) []byte {
	head := b[0]
	p.op, p.args = trace.Op(head&packedOps), head&packedArgs != 0
	var seq, time, id, n int64
	var size uint64
	seq, b = varint(b[1:])
	time, b = varint(b)
	id, b = varint(b)
	size, b = uvarint(b)
	p.seq, p.time, p.id, p.size = p.seq+uint64(seq), p.time+time, p.id+uint64(id), size
	if head&(packedFunction|packedResource|packedContext|packedPID) == 0 {
		return b
	}
	for _, f := range [...]struct {
		bit byte
		to  *uint32
	}{{packedFunction, &p.function}, {packedResource, &p.resource}, {packedContext, &p.context}} {
		if head&f.bit != 0 {
			size, b = uvarint(b)
			*f.to = uint32(size)
		}
	}
	if head&packedPID != 0 {
		n, b = varint(b)
		p.pid = int32(n)
	}
	return b
}

func varint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[n:]
}

func uvarint(b []byte) (uint64, []byte) {
	v, n := binary.Uvarint(b)
	return v, b[n:]
}
