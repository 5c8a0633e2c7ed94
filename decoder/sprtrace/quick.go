package sprtrace

import (
	"bytes"
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Nearly all packets of a real trace are a CALL, its BTRC, and the next CALL. In the
// form of today's writers, which leaves no choices, this file reads them in a third of
// the time. Everything else is left to Reader.link and the functions that it calls,
// which handle all forms.

// Sizes of the packets that are read in one step.
const (
	// quickPacket is the largest size of data in bytes, far below every limit.
	quickPacket = 4096
	// quickCall is the size of a CALL up to its name, with its header. quickTail is the
	// size of what follows the name, and quickStack that of a BTRC up to its frames.
	quickCall  = wire.HeadSize + 16
	quickTail  = 4 + 8
	quickStack = wire.HeadSize + 4
)

// quickName is the name of a function by the bytes that it has in a CALL, including its
// length, if those are eight.
type quickName struct {
	raw  uint64
	text string
}

const quickNames = 16

// canQuick reports whether the trace has the usual form. The answer is final once the
// layout of CALL is known, up to the next handshake.
func (d *Reader) canQuick() bool {
	w := &d.w
	return w.callOrder == 0 && w.order.Pointer == 8 && !w.order.Big && !w.sizeFirst && w.hs.Version >= wire.V20 &&
		!d.opts.Strict && !d.opts.Skim && d.opts.MaxPacket >= quickPacket
}

// quick reads a CALL and its BTRC if a CALL follows them. If it returns false, it has
// changed nothing.
func (d *Reader) quick(rec *trace.Record) bool {
	w := &d.w
	b := w.src.Bytes()
	if len(b) < quickCall+8 {
		return false
	}
	size := int(binary.LittleEndian.Uint32(b[4:]))
	if binary.LittleEndian.Uint32(b) != wire.CALL || size > quickPacket || size < quickCall-wire.HeadSize+2+quickTail ||
		len(b) < wire.HeadSize+size+quickStack {
		return false
	}
	call, stack := b[:wire.HeadSize+size], b[wire.HeadSize+size:]
	length := int(binary.LittleEndian.Uint16(call[quickCall:]))
	if (length+2)%4 != 0 || len(call) < quickCall+2+length+quickTail {
		return false
	}
	tail := call[quickCall+2+length:]
	kind := binary.LittleEndian.Uint32(call[wire.HeadSize+12:])
	if kind != wire.CallAlloc && kind != wire.CallFree {
		return false
	}

	size = int(binary.LittleEndian.Uint32(stack[4:]))
	n := int(binary.LittleEndian.Uint32(stack[wire.HeadSize:]))
	if binary.LittleEndian.Uint32(stack) != wire.BTRC || size > quickPacket || n > (size-4)/8 || size < 4 ||
		len(stack) < wire.HeadSize+size+4 || binary.LittleEndian.Uint32(stack[wire.HeadSize+size:]) != wire.CALL {
		return false
	}
	w.src.Skip(len(call) + wire.HeadSize + size)
	w.loaded = false
	d.stats.Packets += 2
	d.stats.Calls++
	d.seq++

	d.start(rec, trace.KindCall)
	rec.Time = int64(binary.LittleEndian.Uint32(call[wire.HeadSize+8:])) * 1e6
	c := &rec.Call
	c.Seq = d.seq
	c.Op = trace.OpFree
	if kind == wire.CallAlloc {
		c.Op = trace.OpAlloc
	}
	if length == 6 {
		c.Function = d.names.quick(call[quickCall : quickCall+8])
	} else {
		c.Function = d.names.get(cutNUL(call[quickCall+2 : quickCall+2+length]))
	}
	c.Resource = binary.LittleEndian.Uint32(call[wire.HeadSize:])
	c.Context = binary.LittleEndian.Uint32(call[wire.HeadSize+4:])
	c.ID = binary.LittleEndian.Uint64(tail[4:])
	c.Size = uint64(binary.LittleEndian.Uint32(tail))
	if d.opts.Legacy {
		c.Size = uint64(int64(int32(c.Size)))
	}
	c.OldID, c.EntryTime = 0, 0
	c.Index, c.Thread = 0, 0
	c.Caller = trace.Caller{}
	c.Args = nil
	s := &c.Stack // field by field: a literal would be built first and then copied
	s.Frames, s.Names = d.quickFrames(stack[quickStack:], n), nil
	s.End, s.FramePointer, s.Reason = trace.StackUnknown, false, ""
	return true
}

// quickFrames returns the frames of n pointers at the start of b.
func (d *Reader) quickFrames(b []byte, n int) []uint64 {
	if cap(d.frames) < n {
		d.frames = make([]uint64, n)
	}
	frames := d.frames[:n]
	b = b[:8*n]
	for i := range frames {
		frames[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return frames
}

// names makes strings of names.
type names struct {
	interner
	short [quickNames]quickName
}

// quick returns the name with the given bytes, of which the first two are its length.
func (n *names) quick(b []byte) string {
	raw := binary.LittleEndian.Uint64(b)
	slot := &n.short[raw*0x9e3779b97f4a7c15>>60]
	if slot.raw != raw {
		*slot = quickName{raw, n.get(cutNUL(b[2:]))}
	}
	return slot.text
}

func cutNUL(b []byte) []byte {
	text, _, _ := bytes.Cut(b, []byte{0})
	return text
}

// skim skips the packets of calls that are whole in the buffer.
func (d *Reader) skim() {
	w := &d.w
	if w.loaded || w.order.Big || w.sizeFirst {
		return
	}
	b := w.src.Bytes()
	at := 0
	for len(b)-at >= wire.HeadSize {
		code, size := binary.LittleEndian.Uint32(b[at:]), int(binary.LittleEndian.Uint32(b[at+4:]))
		if code != wire.CALL && code != wire.BTRC && code != wire.ARGS ||
			size > w.opts.MaxPacket || size > len(b)-at-wire.HeadSize {
			break
		}
		at += wire.HeadSize + size
		d.stats.Packets++
	}
	w.src.Skip(at)
}
