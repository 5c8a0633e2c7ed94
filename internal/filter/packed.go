package filter

import (
	"encoding/binary"
	"math/bits"

	"rtrace-bpf/trace"
)

// packed is a call in packed form: the difference from the one before it. The
// first one differs from the zero packed.
type packed struct {
	seq, id, size     uint64
	time              int64
	function          uint32
	resource, context uint32
	pid               int32
	op                trace.Op
	args              bool
}

// A call begins with a byte: two bits are the operation, the others mark the
// fields that differ from the call before. Two bytes follow with the lengths,
// in four bits each, of the differences of seq, time and id, and of the size.
// Then come these numbers, the lowest byte first, and the fields that differ,
// in four bytes each. Numbers are read and written as whole words, without a
// branch for each byte; therefore a piece has room for a word after its last
// call.
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

// maxPacked is the largest length of a call in bytes, with the room after it.
const maxPacked = packedHead + 4*wordSize + 4*4 + wordSize

// append packs a call relative to p, appends it to b, which must have room for
// maxPacked bytes, and stores it in p. function is the number of its function.
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

// bytesOf returns the number of bytes of a number.
func bytesOf(v uint64) int { return (bits.Len64(v) + 7) / 8 }

// next unpacks the call after p, stores it in p, and returns the rest. The
// capacity of b includes the room after its last call.
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

// zigzag maps numbers near zero to small unsigned numbers.
func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
