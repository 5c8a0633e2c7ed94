package sprtrace

import (
	"math/bits"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/sprtrace"
)

// How far detection looks ahead. The result depends only on the bytes, not on how the
// underlying reader splits them.
const (
	detectBytes   = 32 << 10
	detectPackets = 4 // packets to look at
	detectEnough  = 2 // known packets that confirm the framing in the handshake
	detectCalls   = 64
	detectMargin  = 3 // points against the layout of CALL that the framing suggests
)

// framing is one way to read the headers of packets.
type framing struct {
	big, sizeFirst bool
}

// detectFraming determines byte order and framing from the headers of the packets that
// start rel bytes ahead. It uses those in the handshake unless others give more known
// packet types.
func (w *Walker) detectFraming(rel int) {
	said := framing{big: w.order.Big, sizeFirst: w.sizeFirst}
	best, most := said, -1
	for i := range 4 {
		f := framing{big: said.big != (i&2 != 0), sizeFirst: said.sizeFirst != (i&1 != 0)}
		known, swapped := w.countKnown(f, rel)
		if known > most {
			best, most = f, known
			w.swapped = swapped
		}
		if i == 0 && known >= detectEnough {
			break
		}
	}
	w.order.Big, w.sizeFirst = best.big, best.sizeFirst
}

// countKnown returns how many of the first packets have a known type when read as f,
// and whether the last of those had its letters swapped.
func (w *Walker) countKnown(f framing, rel int) (known int, swapped bool) {
	order, sizeFirst := w.order, w.sizeFirst
	defer func() { w.order, w.sizeFirst = order, sizeFirst }()
	w.order = binio.Order{Big: f.big, Pointer: order.Pointer}
	w.sizeFirst = f.sizeFirst
	for range detectPackets {
		if rel > detectBytes || !w.src.Have(rel+wire.HeadSize) {
			break
		}
		code, size, err := w.head(rel)
		if err != nil {
			break
		}
		if def := w.known(code); def != nil {
			known++
			swapped = code != def.Code && code != def.Buggy()
		}
		rel += wire.HeadSize + size
	}
	return known, swapped
}

// dialect returns the layout of CALL, and detects it at the first call. The current
// packet is a CALL then.
func (w *Walker) dialect() int {
	if w.callOrder < 0 {
		w.callOrder = w.detectCalls()
		w.data = w.src.Bytes()[wire.HeadSize:w.total] // looking ahead may have moved the buffer
	}
	return w.callOrder
}

// documentFraming reports whether the framing is that of the protocol document: a
// version up to 1.4, but the type before the size.
func (w *Walker) documentFraming() bool {
	return w.hs.Version < wire.V20 && !w.sizeFirst
}

// declared is the resources and contexts that a trace has declared so far.
type declared struct {
	resources uint64 // bit n: RESR n was seen, n < 64
	contexts  uint32 // CTXR ids seen
}

// add adds the id in a packet, if it declares something.
func (k *declared) add(code, id uint32) {
	switch {
	case code == wire.RESR && id < 64:
		k.resources |= 1 << id
	case code == wire.CTXR:
		k.contexts |= id
	}
}

// onlyResource returns the id of the only resource, or 0. In the protocol document, calls
// may use 0 for it.
func (k *declared) onlyResource() uint32 {
	if bits.OnesCount64(k.resources) != 1 {
		return 0
	}
	return uint32(bits.TrailingZeros64(k.resources))
}

// detectCalls distinguishes the two layouts of CALL. Both have the same fields, so it
// reads every call both ways and counts points for values that no writer sends. Without
// a clear difference the framing decides.
func (w *Walker) detectCalls() int {
	var (
		code, doc callScore
		seen      = w.declared
		rel       = 0
	)
	for calls := 0; calls < detectCalls; {
		if !w.src.Have(rel + wire.HeadSize) {
			break
		}
		kind, size, err := w.head(rel)
		end := rel + wire.HeadSize + size
		if err != nil || end > detectBytes || !w.src.Have(end) {
			break
		}
		data := w.src.Bytes()[rel+wire.HeadSize : end]
		rel = end
		def := w.known(kind)
		if def == nil || len(data) < 4 {
			continue
		}
		switch def.Code {
		case wire.RESR, wire.CTXR:
			seen.add(def.Code, w.order.U32(data))
		case wire.CALL:
			calls++
			a, ok := splitCall(data, w.order)
			if !ok {
				continue
			}
			code.add(a.words[0], a.words[1], a.words[2], a.kind, a.sizeFirst, a.idLast, &seen)
			doc.add(a.words[1], a.words[2], a.words[0], a.kind, a.sizeLast, a.idFirst, &seen)
			if d := code.points - doc.points; d >= detectMargin {
				return wire.CallDocument
			} else if d <= -detectMargin {
				return 0
			}
		}
	}
	if w.documentFraming() {
		return wire.CallDocument
	}
	return 0
}

// callParts holds the fields of a CALL in both layouts.
type callParts struct {
	words     [3]uint32
	kind      uint32
	sizeFirst uint32 // size, if it precedes the id
	idLast    uint64
	idFirst   uint64
	sizeLast  uint32 // size, if it follows the id
}

func splitCall(b []byte, order binio.Order) (callParts, bool) {
	var a callParts
	const name = 16
	if len(b) < name+2 {
		return a, false
	}
	rest := name + wire.TextSize(order.U16(b[name:]))
	if len(b) < rest+4+order.Pointer {
		return a, false
	}
	for i := range a.words {
		a.words[i] = order.U32(b[4*i:])
	}
	a.kind = order.U32(b[12:])
	b = b[rest:]
	a.sizeFirst, a.idLast = order.U32(b), order.Ptr(b[4:])
	a.idFirst, a.sizeLast = order.Ptr(b), order.U32(b[order.Pointer:])
	return a, true
}

// callScore counts how unlikely a layout is.
type callScore struct {
	points int
	last   uint32
}

func (s *callScore) add(resource, context, timestamp, kind, size uint32, id uint64, seen *declared) {
	if resource > wire.MaxResources {
		s.points += 2
	} else if seen.resources != 0 && seen.resources&(1<<resource) == 0 && (resource != 0 || bits.OnesCount64(seen.resources) > 1) {
		s.points++ // not declared; 0 may stand for the only one
	}
	if context&^seen.contexts != 0 {
		s.points++
	}
	if timestamp >= wire.DayMillis {
		s.points += 2
	} else if timestamp < s.last && s.last-timestamp < wire.DayMillis/2 {
		s.points++
	}
	s.last = timestamp
	if kind == wire.CallFree && size != 0 {
		s.points += detectMargin // required by the format
	}
	if high := id >> 48; high != 0 && high != 0xffff {
		s.points++
	}
}
