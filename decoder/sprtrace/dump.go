package sprtrace

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// rawLine is how many bytes a RAW line holds at most.
const rawLine = 64

// Dump writes the packets of a trace as text, one line each, from which Undump
// restores every byte. docs/formats/sprtrace.md describes the lines.
//
// What does not parse is written in hexadecimal. After a packet whose size is
// impossible, and for a cut one, all the rest is; Dump then returns the
// *trace.SyntaxError that tells why, with everything written.
func Dump(w io.Writer, r io.Reader, opts Options) error {
	walker, err := NewWalker(r, opts)
	if err != nil {
		return err
	}
	d := dumper{w: w, walker: walker}
	return d.run()
}

type dumper struct {
	w      io.Writer
	walker *Walker
	vals   []Value
	line   []byte
	again  []byte // the packet as Undump would restore it
}

func (d *dumper) run() error {
	var p Packet
	for {
		err := d.walker.Next(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
				if err := d.rest(); err != nil {
					return err
				}
			}
			return err
		}
		if p.Handshake != nil {
			d.handshake(&p)
		} else {
			d.packet(&p)
		}
		if err := d.flush(); err != nil {
			return err
		}
	}
}

func (d *dumper) flush() error {
	_, err := d.w.Write(d.line)
	d.line = d.line[:0]
	return err
}

// rest writes what cannot be split into packets.
func (d *dumper) rest() error {
	src := &d.walker.src
	for src.need(1) {
		src.need(rawLine)
		b := src.window()
		b = b[:min(len(b), rawLine)]
		d.start(src.offset(), len(b), "RAW")
		d.hex("data", b)
		d.line = append(d.line, '\n')
		if err := d.flush(); err != nil {
			return err
		}
		src.pos += len(b)
	}
	if !errors.Is(src.err, io.EOF) {
		return src.err
	}
	return nil
}

// start begins a line with the columns that all lines have.
func (d *dumper) start(offset int64, size int, word string) {
	var room [20]byte
	s := strconv.AppendInt(room[:0], offset, 16)
	for i := len(s); i < 8; i++ {
		d.line = append(d.line, '0')
	}
	d.line = append(d.line, s...)
	d.line = append(d.line, ' ')
	s = strconv.AppendInt(room[:0], int64(size), 10)
	for i := len(s); i < 5; i++ {
		d.line = append(d.line, ' ')
	}
	d.line = append(d.line, s...)
	d.line = append(d.line, ' ')
	d.line = append(d.line, word...)
}

func (d *dumper) key(name string) {
	d.line = append(d.line, ' ')
	d.line = append(d.line, name...)
	d.line = append(d.line, '=')
}

func (d *dumper) hex(name string, b []byte) {
	d.key(name)
	d.line = hex.AppendEncode(d.line, b)
}

func (d *dumper) handshake(p *Packet) {
	hs, w := p.Handshake, d.walker
	if canonical(p.Raw) {
		d.start(p.Offset, len(p.Raw)-2, "HANDSHAKE")
		d.key("version")
		d.line = strconv.AppendUint(d.line, uint64(hs.Version.Major()), 10)
		d.line = append(d.line, '.')
		d.line = strconv.AppendUint(d.line, uint64(hs.Version.Minor()), 10)
		d.key("arch")
		d.line = strconv.AppendQuoteToASCII(d.line, hs.Arch)
		d.key("endian")
		d.line = strconv.AppendUint(d.line, uint64(hs.Endian), 10)
		d.key("pointer")
		d.line = strconv.AppendUint(d.line, uint64(hs.Pointer), 10)
	} else {
		d.start(p.Offset, len(p.Raw), "RAW")
		d.hex("data", p.Raw)
	}
	d.line = append(d.line, '\n')
	// How the packets that follow are to be put together.
	d.start(p.Offset, 0, "LAYOUT")
	for _, word := range layoutWords(w.order, w.sizeFirst, w.swapped) {
		d.line = append(d.line, ' ')
		d.line = append(d.line, word...)
	}
	d.line = append(d.line, '\n')
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

// packet writes the line of a packet by its fields if they say everything about
// it, else in hexadecimal.
func (d *dumper) packet(p *Packet) {
	w := d.walker
	pk := packer{order: w.order, sizeFirst: w.sizeFirst, swapped: w.swapped}
	vals, rest, err := w.Fields(p, d.vals[:0])
	d.vals = vals
	code := pk.code(p.Raw)
	spelled := wire.Lookup(code) != nil || wire.LookupBuggy(code) != nil
	if err == nil && spelled {
		start := len(d.line)
		word := wire.Letters(code)
		d.again = pk.start(d.again[:0], code)
		d.start(p.Offset, len(p.Data), word)
		for i := range vals {
			d.key(vals[i].Field.Name)
			d.value(&vals[i])
			d.again = pk.appendValue(d.again, &vals[i])
		}
		if len(rest) > 0 {
			d.hex("rest", rest)
			d.again = append(d.again, rest...)
		}
		if pk.end(d.again); bytes.Equal(d.again, p.Raw) {
			d.line = append(d.line, '\n')
			return
		}
		d.line = d.line[:start]
	}
	d.start(p.Offset, len(p.Data), "PACKET")
	d.key("code")
	d.line = append(d.line, "0x"...)
	d.line = strconv.AppendUint(d.line, uint64(code), 16)
	d.hex("data", p.Data)
	if p.Name != "" {
		d.line = append(d.line, " # "...)
		d.line = append(d.line, p.Name...)
		if err != nil {
			d.line = append(d.line, ": "...)
			d.line = append(d.line, err.Error()...)
		}
	}
	d.line = append(d.line, '\n')
}

func (d *dumper) value(v *Value) {
	switch v.Field.Type {
	case wire.Dword:
		d.line = strconv.AppendUint(d.line, v.Num, 10)
	case wire.Signed:
		d.line = strconv.AppendInt(d.line, int64(v.Num), 10)
	case wire.Hex, wire.Pointer:
		d.address(v.Num)
	case wire.String:
		d.text(v.Text)
	case wire.Frames:
		d.line = append(d.line, '[')
		for i, f := range v.Frames {
			if i > 0 {
				d.line = append(d.line, ' ')
			}
			d.address(f)
		}
		d.line = append(d.line, ']')
	case wire.Pairs, wire.Texts:
		d.line = append(d.line, '[')
		for i, t := range v.Texts {
			switch {
			case i > 0 && v.Field.Type == wire.Pairs && i%2 == 1:
				d.line = append(d.line, '=')
			case i > 0:
				d.line = append(d.line, ' ')
			}
			d.text(t)
		}
		d.line = append(d.line, ']')
	}
}

func (d *dumper) address(v uint64) {
	d.line = append(d.line, "0x"...)
	d.line = strconv.AppendUint(d.line, v, 16)
}

// The words before a string that says how it lies in the packet.
const (
	wordNull  = "null"
	wordExact = "exact"
)

func (d *dumper) text(t Text) {
	switch t.Form {
	case TextNull:
		d.line = append(d.line, wordNull...)
		return
	case TextExact:
		d.line = append(d.line, wordExact...)
	}
	d.line = strconv.AppendQuoteToASCII(d.line, string(t.Bytes))
}
