package filter

import (
	"encoding/binary"
	"math/bits"

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

// A call begins with the operation in two bits of a byte and what is not as
// before in others. Two bytes follow with the lengths, in four bits each, of the
// differences of seq, time and id, and of the size. Those are next, the lowest byte
// first, and then what is not as before, in four bytes each. So that numbers are
// read and written whole, without a branch for each byte, a piece has room for a
// number behind its last call.
const (
	packedOps      = 3
	packedArgs     = 1 << 2
	packedFunction = 1 << 3
	packedResource = 1 << 4
	packedContext  = 1 << 5
	packedPID      = 1 << 6
	packedOthers   = packedFunction | packedResource | packedContext | packedPID

	packedHead = 3
	lengthBits = 4
	lengthMask = 1<<lengthBits - 1
	wordSize   = 8
)

// maxPacked is the most bytes that a call takes, with the room behind it.
const maxPacked = packedHead + 4*wordSize + 4*4 + wordSize

// append packs a call, of which function is the number, behind p into b, which
// has room for maxPacked bytes, and makes it p.
func (p *packed) append(b []byte, r *trace.Record, function uint32) []byte {
	c := &r.Call
	n := len(b)
	to := (*[maxPacked]byte)(b[n : n+maxPacked])
	head := byte(c.Op) & packedOps
	if p.args = len(c.Args) > 0; p.args {
		head |= packedArgs
	}
	seq, time, id, size := zigzag(int64(c.Seq-p.seq)), zigzag(r.Time-p.time), zigzag(int64(c.ID-p.id)), c.Size
	p.seq, p.time, p.id, p.size, p.op = c.Seq, r.Time, c.ID, c.Size, c.Op
	seqSize, timeSize, idSize, sizeSize := bytesOf(seq), bytesOf(time), bytesOf(id), bytesOf(size)
	i := packedHead
	binary.LittleEndian.PutUint64(to[i:], seq)
	i += seqSize
	binary.LittleEndian.PutUint64(to[i:], time)
	i += timeSize
	binary.LittleEndian.PutUint64(to[i:], id)
	i += idSize
	binary.LittleEndian.PutUint64(to[i:], size)
	i += sizeSize
	binary.LittleEndian.PutUint16(to[1:], uint16(seqSize|timeSize<<lengthBits|idSize<<(2*lengthBits)|sizeSize<<(3*lengthBits)))
	put := func(bit byte, now uint32, was *uint32) {
		if now != *was {
			head |= bit
			*was = now
			binary.LittleEndian.PutUint32(to[i:], now)
			i += 4
		}
	}
	put(packedFunction, function, &p.function)
	put(packedResource, c.Resource, &p.resource)
	put(packedContext, c.Context, &p.context)
	if r.PID != p.pid {
		pid := uint32(p.pid)
		put(packedPID, uint32(r.PID), &pid)
		p.pid = r.PID
	}
	to[0] = head
	return b[:n+i]
}

// bytesOf is how many bytes a number takes.
func bytesOf(v uint64) int { return (bits.Len64(v) + 7) / 8 }

// next unpacks the call behind p, makes it p, and returns what follows it. The
// capacity of b has the room behind its last call.
func (p *packed) next(b []byte) []byte {
	in := b[:cap(b)]
	head, lengths := in[0], binary.LittleEndian.Uint16(in[1:])
	p.op, p.args = trace.Op(head&packedOps), head&packedArgs != 0
	i := packedHead
	word := func(at int) uint64 {
		l := int(lengths>>(at*lengthBits)) & lengthMask
		v := binary.LittleEndian.Uint64(in[i:]) & (1<<(8*uint(l)) - 1)
		i += l
		return v
	}
	p.seq += uint64(unzigzag(word(0)))
	p.time += unzigzag(word(1))
	p.id += uint64(unzigzag(word(2)))
	p.size = word(3)
	if head&packedOthers == 0 {
		return b[i:]
	}
	pid := uint32(p.pid)
	for _, x := range [...]struct {
		bit byte
		to  *uint32
	}{{packedFunction, &p.function}, {packedResource, &p.resource}, {packedContext, &p.context}, {packedPID, &pid}} {
		if head&x.bit != 0 {
			*x.to = binary.LittleEndian.Uint32(in[i:])
			i += 4
		}
	}
	p.pid = int32(pid)
	return b[i:]
}

// zigzag makes small numbers of those near zero.
func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
