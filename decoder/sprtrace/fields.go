package sprtrace

import (
	"errors"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/sprtrace"
)

var errUnknownType = errors.New("unknown packet type")

// Value is the value of one field. Field.Type selects the member that holds it.
type Value struct {
	Field  *wire.Field
	Num    uint64   // Dword, Signed (sign-extended), Hex, Pointer
	Text   Text     // String
	Frames []uint64 // Frames
	Texts  []Text   // Texts; Pairs as name, value, name, value …
}

// Fields appends the values of the packet that Next returned last to dst, in the order
// of the packet, and returns the bytes after them. Texts point into the packet. The
// error describes why the packet does not parse.
func (w *Walker) Fields(p *Packet, dst []Value) (vals []Value, rest []byte, err error) {
	def := wire.Lookup(p.Code)
	if def == nil {
		return dst, p.Data, errUnknownType
	}
	return w.parse(dst, w.layout(def, p.Data), p.Data)
}

// layout returns the layout of the fields in data.
func (w *Walker) layout(def *wire.Packet, data []byte) *wire.Layout {
	n := 0
	switch def.Code {
	case wire.CALL:
		n = max(w.callOrder, 0)
	case wire.ARGS:
		if !w.opts.Legacy && w.argsTexts(data) {
			n = wire.ArgsTexts
		}
	case wire.HINF:
		if !w.opts.Legacy && w.order.Pointer == 8 && len(data) == heapNarrowSize {
			n = wire.HeapNarrow
		}
	}
	return &def.Layouts[n]
}

// heapNarrowSize is the size of HINF with pointers of 4 bytes.
const heapNarrowSize = 48

// argsTexts reports whether an ARGS packet has one string for each argument instead of
// two, as versions before 1.3 do. The number of strings in the packet decides, because
// some traces have such a version and two strings.
func (w *Walker) argsTexts(data []byte) bool {
	if len(data) < 4 {
		return false
	}
	want := uint64(w.order.U32(data))
	var n uint64
	for b := data[4:]; len(b) > 0 && n <= 2*want; n++ {
		_, size, ok := splitText(b, w.order, false)
		if !ok {
			return false
		}
		b = b[size:]
	}
	if n == want || n == 2*want {
		return n == want && want != 0
	}
	return w.hs.Version < wire.V13
}

// parse appends the values in data to vals.
func (w *Walker) parse(vals []Value, l *wire.Layout, data []byte) ([]Value, []byte, error) {
	c := binio.NewCursor(data, w.order)
	for i := range l.Fields {
		f := &l.Fields[i]
		if f.Since > w.hs.Version {
			continue
		}
		v := Value{Field: f}
		switch f.Type {
		case wire.Dword, wire.Hex:
			v.Num = uint64(c.U32())
		case wire.Signed:
			v.Num = uint64(int64(int32(c.U32())))
		case wire.Pointer:
			v.Num = c.Ptr()
		case wire.String:
			v.Text = w.text(&c, data)
		case wire.Frames:
			n := uint64(c.U32())
			if c.Fits(n, w.order.Pointer) {
				v.Frames = make([]uint64, n)
				for i := range v.Frames {
					v.Frames[i] = c.Ptr()
				}
			}
		case wire.Pairs, wire.Texts:
			n := uint64(c.U32())
			if f.Type == wire.Pairs {
				n *= 2
			}
			// A string takes 4 bytes, but the padding of the last one may be missing.
			if n != 0 && c.Fits(n-1, 4) {
				v.Texts = make([]Text, n)
				for i := range v.Texts {
					v.Texts[i] = w.text(&c, data)
				}
			}
		}
		if err := c.Err(); err != nil {
			return vals, nil, err
		}
		vals = append(vals, v)
	}
	return vals, data[c.Offset():], nil
}

// text reads a string with c, a cursor on data.
func (w *Walker) text(c *binio.Cursor, data []byte) Text {
	if c.Err() != nil {
		return Text{}
	}
	b := data[c.Offset():]
	text, n, ok := splitText(b, w.order, w.opts.Legacy)
	if !ok {
		c.Fail(binio.ErrShort)
		return Text{}
	}
	c.Bytes(n)
	form := textForm(b, w.order)
	if form == TextExact {
		w.exactText = true
	}
	return Text{Bytes: text, Form: form}
}
