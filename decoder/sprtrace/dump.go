package sprtrace

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/dumptext"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Dump writes the packets of a trace as text, one line each, from which Undump restores
// every byte. docs/formats/sprtrace.md describes the lines.
//
// Dump writes packets that do not parse in hexadecimal. After an impossible packet
// size, and for a cut packet, it writes the rest of the input in hexadecimal. It
// returns the *trace.SyntaxError after everything is written. It also returns one for a
// trace without the End that it announces.
func Dump(w io.Writer, r io.Reader, opts Options) error {
	walker, err := NewWalker(r, opts)
	if err != nil {
		return err
	}
	d := dumper{Line: dumptext.Line{W: w}, walker: walker}
	return d.run()
}

type dumper struct {
	dumptext.Line
	walker *Walker
	vals   []Value
	again  []byte // the packet as Undump would restore it
	begun  bool   // the packet before was a handshake
	open   bool   // the trace has announced an End that has not come yet
}

func (d *dumper) run() error {
	var p Packet
	for {
		err := d.walker.Next(&p)
		if errors.Is(err, io.EOF) {
			if d.open {
				return syntaxError(d.walker.src.Offset(), trace.ErrUnfinished)
			}
			return nil
		}
		if err != nil {
			if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
				if err := d.Rest(&d.walker.src); err != nil {
					return err
				}
			}
			return err
		}
		if p.Handshake != nil {
			if err := d.handshake(&p); err != nil {
				return err
			}
		} else {
			d.packet(&p)
			if p.Code == wire.OCFG {
				switch options := d.options(&p); {
				case d.begun && options == wire.Ends:
					d.open = true
				case options == wire.End:
					d.open = false
				}
			}
		}
		d.begun = p.Handshake != nil
		if err := d.End(); err != nil {
			return err
		}
	}
}

// options returns the options in an OCFG.
func (d *dumper) options(p *Packet) string {
	vals, _, err := d.walker.Fields(p, d.vals[:0])
	d.vals = vals
	if err != nil || len(vals) != 2 {
		return ""
	}
	return string(vals[1].Text.Bytes)
}

// handshake writes the line of a handshake, and begins the line with the layout of the
// packets that follow.
func (d *dumper) handshake(p *Packet) error {
	hs, w := p.Handshake, d.walker
	if canonical(p.Raw) {
		d.Start(p.Offset, len(p.Raw)-2, "HANDSHAKE")
		d.Key("version")
		d.Text = strconv.AppendUint(d.Text, uint64(hs.Version.Major()), 10)
		d.Text = append(d.Text, '.')
		d.Text = strconv.AppendUint(d.Text, uint64(hs.Version.Minor()), 10)
		d.Key("arch")
		d.Text = strconv.AppendQuoteToASCII(d.Text, hs.Arch)
		d.Key("endian")
		d.Text = strconv.AppendUint(d.Text, uint64(hs.Endian), 10)
		d.Key("pointer")
		d.Text = strconv.AppendUint(d.Text, uint64(hs.Pointer), 10)
	} else {
		d.Start(p.Offset, len(p.Raw), dumptext.Raw)
		d.Hex("data", p.Raw)
	}
	if err := d.End(); err != nil {
		return err
	}
	d.Start(p.Offset, 0, "LAYOUT")
	for _, word := range layoutWords(w.order, w.sizeFirst, w.swapped) {
		d.Text = append(d.Text, ' ')
		d.Text = append(d.Text, word...)
	}
	return nil
}

// The words of a LAYOUT line.
const (
	wordTypeFirst = "type-first"
	wordSizeFirst = "size-first"
	wordLittle    = "little-endian"
	wordBig       = "big-endian"
	wordPointer4  = "4-byte-pointers"
	wordPointer8  = "8-byte-pointers"
	wordSwapped   = "swapped-letters"
)

func layoutWords(order binio.Order, sizeFirst, swapped bool) []string {
	words := []string{wordTypeFirst, wordLittle, wordPointer8}
	if sizeFirst {
		words[0] = wordSizeFirst
	}
	if order.Big {
		words[1] = wordBig
	}
	if order.Pointer == 4 {
		words[2] = wordPointer4
	}
	if swapped {
		words = append(words, wordSwapped)
	}
	return words
}

// packet writes the line of a packet: its fields if they restore every byte, else in
// hexadecimal.
func (d *dumper) packet(p *Packet) {
	w := d.walker
	pk := packer{order: w.order, sizeFirst: w.sizeFirst, swapped: w.swapped}
	vals, rest, err := w.Fields(p, d.vals[:0])
	d.vals = vals
	code := pk.code(p.Raw)
	spelled := wire.Lookup(code) != nil || wire.LookupBuggy(code) != nil
	if err == nil && spelled {
		word := wire.Letters(code)
		d.again = pk.start(d.again[:0], code)
		d.Start(p.Offset, len(p.Data), word)
		for i := range vals {
			d.Key(vals[i].Field.Name)
			d.value(&vals[i])
			d.again = pk.appendValue(d.again, &vals[i])
		}
		if len(rest) > 0 {
			d.Hex("rest", rest)
			d.again = append(d.again, rest...)
		}
		if pk.end(d.again); bytes.Equal(d.again, p.Raw) {
			return
		}
	}
	d.Start(p.Offset, len(p.Data), "PACKET")
	d.Key("code")
	d.Text = append(d.Text, "0x"...)
	d.Text = strconv.AppendUint(d.Text, uint64(code), 16)
	d.Hex("data", p.Data)
	if p.Name != "" {
		d.Text = append(d.Text, " # "...)
		d.Text = append(d.Text, p.Name...)
		if err != nil {
			d.Text = append(d.Text, ": "...)
			d.Text = append(d.Text, err.Error()...)
		}
	}
}

func (d *dumper) value(v *Value) {
	switch v.Field.Type {
	case wire.Dword:
		d.Text = strconv.AppendUint(d.Text, v.Num, 10)
	case wire.Signed:
		d.Text = strconv.AppendInt(d.Text, int64(v.Num), 10)
	case wire.Hex, wire.Pointer:
		d.address(v.Num)
	case wire.String:
		d.text(v.Text)
	case wire.Frames:
		d.Text = append(d.Text, '[')
		for i, f := range v.Frames {
			if i > 0 {
				d.Text = append(d.Text, ' ')
			}
			d.address(f)
		}
		d.Text = append(d.Text, ']')
	case wire.Pairs, wire.Texts:
		d.Text = append(d.Text, '[')
		for i, t := range v.Texts {
			switch {
			case i > 0 && v.Field.Type == wire.Pairs && i%2 == 1:
				d.Text = append(d.Text, '=')
			case i > 0:
				d.Text = append(d.Text, ' ')
			}
			d.text(t)
		}
		d.Text = append(d.Text, ']')
	}
}

func (d *dumper) address(v uint64) {
	d.Text = append(d.Text, "0x"...)
	d.Text = strconv.AppendUint(d.Text, v, 16)
}

// The words before a string that has an unusual form in the packet.
const (
	wordNull  = "null"
	wordExact = "exact"
)

func (d *dumper) text(t Text) {
	switch t.Form {
	case TextNull:
		d.Text = append(d.Text, wordNull...)
		return
	case TextExact:
		d.Text = append(d.Text, wordExact...)
	}
	d.Text = strconv.AppendQuoteToASCII(d.Text, string(t.Bytes))
}
