package sprtrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// maxDeferred bounds how many packets may be between a call and its stack.
const maxDeferred = 16

// deferred holds packets that were between a CALL and its BTRC. They are delivered
// after the call.
type deferred struct {
	packets []deferredPacket
	next    int
}

type deferredPacket struct {
	code   uint32
	data   []byte
	offset int64
}

func (q *deferred) take() deferredPacket {
	p := q.packets[q.next]
	q.next++
	return p
}

// readCall makes a record of the current packet, a CALL, and of the packets that belong
// to it.
func (d *Reader) readCall(rec *trace.Record) (done bool, err error) {
	w := &d.w
	layout := w.dialect()
	d.isQuick = d.canQuick()
	data := w.data
	offset := w.src.Offset()
	d.consume()
	d.seq++
	if !d.parseCall(rec, data, layout) {
		return d.odd(rec, wire.CALL, data, offset, &d.stats.Malformed, trace.ErrMalformed)
	}
	d.stats.Calls++
	d.link(rec)
	return true, nil
}

// parseCall sets rec from the data of a CALL, without stack and arguments.
func (d *Reader) parseCall(rec *trace.Record, b []byte, layout int) bool {
	order := d.w.order
	if len(b) < 16 {
		return false
	}
	w0, w1, w2, kind := order.U32(b), order.U32(b[4:]), order.U32(b[8:]), order.U32(b[12:])
	name, n, ok := splitText(b[16:], order, d.opts.Legacy)
	if !ok {
		return false
	}
	rest := b[16+n:]
	if len(rest) < 4+order.Pointer || d.opts.Strict && len(rest) != 4+order.Pointer {
		return false
	}
	if textForm(b[16:], order) == TextExact {
		d.w.exactText = true
	}
	var (
		c    = &rec.Call
		size uint32
	)
	if layout == wire.CallDocument {
		w0, w1, w2 = w1, w2, w0
		if w0 == 0 && d.w.documentFraming() {
			w0 = d.w.declared.onlyResource()
		}
		c.ID, size = order.Ptr(rest), order.U32(rest[order.Pointer:])
	} else {
		size, c.ID = order.U32(rest), order.Ptr(rest[4:])
	}
	switch kind {
	case wire.CallAlloc:
		c.Op = trace.OpAlloc
	case wire.CallFree:
		c.Op = trace.OpFree
	default:
		if kind != wire.CallUndefined && !d.opts.Legacy {
			return false
		}
		c.Op = trace.OpNone
	}
	c.Size = uint64(size)
	if d.opts.Legacy {
		c.Size = uint64(int64(int32(size)))
	}
	d.start(rec, trace.KindCall)
	rec.Time = int64(w2) * 1e6
	c.Seq = d.seq
	c.Function = d.names.get(name)
	c.Resource, c.Context = w0, w1
	c.OldID, c.EntryTime = 0, 0
	c.Index, c.Caller, c.Thread = 0, trace.Caller{}, 0
	c.Stack = trace.Stack{}
	c.Args = nil
	return true
}

// link adds the stack and arguments that follow a call to it.
func (d *Reader) link(rec *trace.Record) {
	w := &d.w
	d.deferred.packets, d.deferred.next = d.deferred.packets[:0], 0
	hasArgs := false
	for w.load() == nil && !w.handshake {
		switch w.code {
		case wire.BTRC:
			if !d.readStack(&rec.Call.Stack, w.data) {
				return // an orphan: it is delivered later
			}
			d.consume()
			d.lateArgs(rec, hasArgs)
			return
		case wire.ARGS:
			if hasArgs && !d.opts.Legacy || !d.readArgs(&rec.Call, w.data) {
				if !d.put() {
					return
				}
				continue
			}
			hasArgs = true
			d.consume()
		case wire.FILE, wire.OCFG:
			if !d.put() {
				return
			}
		default:
			return
		}
	}
	// The next ReadRecord returns the error that ended the trace.
}

// lateArgs accepts ARGS after BTRC, where the protocol document has them.
func (d *Reader) lateArgs(rec *trace.Record, hasArgs bool) {
	w := &d.w
	if hasArgs || d.opts.Legacy || d.opts.Strict && !w.documentFraming() {
		return
	}
	if w.load() != nil || w.handshake || w.code != wire.ARGS {
		return
	}
	if d.readArgs(&rec.Call, w.data) {
		d.consume()
	}
}

// put defers the current packet and reports whether there was room.
func (d *Reader) put() bool {
	if len(d.deferred.packets) == maxDeferred {
		return false
	}
	w := &d.w
	d.deferred.packets = append(d.deferred.packets, deferredPacket{
		code: w.code, data: append([]byte(nil), w.data...), offset: w.src.Offset(),
	})
	d.consume()
	return true
}

// readStack sets s from the data of a BTRC.
func (d *Reader) readStack(s *trace.Stack, b []byte) bool {
	order := d.w.order
	if len(b) < 4 {
		return false
	}
	n := uint64(order.U32(b))
	b = b[4:]
	if n > uint64(len(b)/order.Pointer) || d.opts.Strict && n*uint64(order.Pointer) != uint64(len(b)) {
		return false
	}
	if uint64(cap(d.frames)) < n {
		d.frames = make([]uint64, n)
	}
	frames := d.frames[:n]
	if order.Pointer == 8 && !order.Big {
		for i := range frames {
			frames[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	} else {
		for i := range frames {
			frames[i] = order.Ptr(b[order.Pointer*i:])
		}
	}
	s.Frames, s.End = frames, trace.StackUnknown
	return true
}

// readArgs sets the arguments of c from the data of an ARGS.
func (d *Reader) readArgs(c *trace.Call, data []byte) bool {
	w := &d.w
	order := w.order
	c.Args = nil // it may be d.args, which is overwritten
	if len(data) < 4 {
		return false
	}
	texts := !d.opts.Legacy && w.argsTexts(data)
	n, b := uint64(order.U32(data)), data[4:]
	if n > uint64(len(b)/2) {
		return false
	}
	d.args = d.args[:0]
	for range n {
		var arg trace.Arg
		if !texts {
			name, size, ok := splitText(b, order, d.opts.Legacy)
			if !ok {
				return false
			}
			arg.Name = d.names.get(name)
			b = b[size:]
		}
		value, size, ok := splitText(b, order, d.opts.Legacy)
		if !ok {
			return false
		}
		arg.Value = d.texts.get(value)
		b = b[size:]
		d.args = append(d.args, arg)
	}
	if d.opts.Strict && len(b) != 0 {
		return false
	}
	c.Args = d.args
	return true
}
