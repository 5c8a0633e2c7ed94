package mtrc

import (
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// rawLine is how many bytes a RAW line holds at most.
const rawLine = 64

// The words of lines that are no events.
const (
	wordHeader  = "HEADER"
	wordTrailer = "TRAILER"
	wordRaw     = "RAW"
)

// field is one field of an event.
type field struct {
	name string
	form byte // number, address or text
}

// The forms of fields.
const (
	number  = 'n'
	address = 'a' // a number in base 16
	text    = 't' // a name
)

// fieldsOf returns the fields of a kind of event in their order, none for what
// is no kind. HasSource says which events have those behind the first three.
func fieldsOf(kind wire.Kind, source bool) (list []field) {
	switch kind {
	case wire.Heap, wire.Internal:
		return []field{{"address", address}, {"size", number}}
	case wire.Alloc, wire.Realloc:
		list = []field{{"index", number}, {"address", address}, {"size", number}}
	case wire.Free:
		list = []field{{"index", number}}
	default:
		return nil
	}
	if source {
		list = append(list, field{"thread", number}, field{"function", text}, field{"file", text}, field{"line", number})
	}
	return list
}

// Dump writes the events of a file as text, one line each, from which Undump
// restores every byte. docs/formats/mtrc.md describes the lines.
//
// Where the file is cut or breaks the format all the rest is written in
// hexadecimal, as is what stands behind the last trailer; Dump then returns the
// *trace.SyntaxError that tells why, with everything written.
func Dump(w io.Writer, r io.Reader, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	d := dumper{w: w, s: &Scanner{in: input{r: r, buf: make([]byte, bufferSize)}, opts: o}}
	err := d.run()
	if _, syntax := errors.AsType[*trace.SyntaxError](err); err == nil || syntax {
		if e := d.rest(); e != nil {
			return e
		}
	}
	return err
}

type dumper struct {
	w    io.Writer
	s    *Scanner
	line []byte
}

func (d *dumper) run() error {
	if err := d.s.first(); err != nil {
		return err
	}
	at := int64(0) // where the stream begins
	for {
		if err := d.header(at); err != nil {
			return err
		}
		if err := d.events(); err != nil {
			return err
		}
		if d.s.Whole() {
			d.start(d.s.Offset()-int64(len(wire.Magic)), len(wire.Magic), wordTrailer)
			if err := d.flush(); err != nil {
				return err
			}
		}
		at = d.s.Offset()
		if more, err := d.s.beginNext(); !more || err != nil {
			return err
		}
	}
}

// events writes the events of a stream.
func (d *dumper) events() error {
	var e wire.Event
	for {
		err := d.s.Next(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		in := &d.s.in
		raw := in.buf[in.pos-int(d.s.Offset()-d.s.last) : in.pos]
		d.start(d.s.last, len(raw), string(raw[:1]))
		raw = raw[1:]
		for _, f := range fieldsOf(e.Kind, d.s.source) {
			raw = d.field(f, raw)
		}
		if err := d.flush(); err != nil {
			return err
		}
	}
}

// field writes the field at the start of raw, which is whole, and returns what
// is behind it.
func (d *dumper) field(f field, raw []byte) []byte {
	d.key(f.name)
	if f.form == text {
		id, rest := raw[0], raw[1:]
		d.line = strconv.AppendUint(d.line, uint64(id&^wire.Define), 10)
		if id < wire.Define {
			return rest
		}
		end := 0
		for rest[end] != 0 {
			end++
		}
		d.line = append(d.line, ':')
		d.line = strconv.AppendQuoteToASCII(d.line, string(rest[:end]))
		return rest[end+1:]
	}
	v, n := binio.Uleb128(raw)
	base := 10
	if f.form == address {
		d.line = append(d.line, "0x"...)
		base = 16
	}
	d.line = strconv.AppendUint(d.line, v, base)
	if n != len(binio.AppendUleb128(nil, v)) {
		d.size(n) // longer than it must be
	}
	return raw[n:]
}

// size writes behind a number how many bytes it takes.
func (d *dumper) size(n int) {
	d.line = append(d.line, '/')
	d.line = strconv.AppendInt(d.line, int64(n), 10)
}

func (d *dumper) header(at int64) error {
	h := d.s.Header()
	d.start(at, int(d.s.Offset()-at), wordHeader)
	d.key("words")
	d.line = strconv.AppendInt(d.line, int64(h.Words), 10)
	d.key("endian")
	if h.Big {
		d.line = append(d.line, "big"...)
	} else {
		d.line = append(d.line, "little"...)
	}
	d.key("version")
	d.line = strconv.AppendUint(d.line, h.Version, 10)
	if h.ShortVersion {
		d.size(4)
	}
	return d.flush()
}

// rest writes what is no stream.
func (d *dumper) rest() error {
	in := &d.s.in
	for in.have(1) {
		in.have(rawLine)
		b := in.window()
		b = b[:min(len(b), rawLine)]
		d.start(d.s.Offset(), len(b), wordRaw)
		d.key("data")
		d.line = hex.AppendEncode(d.line, b)
		if err := d.flush(); err != nil {
			return err
		}
		in.pos += len(b)
	}
	if !errors.Is(in.err, io.EOF) {
		return in.err
	}
	return nil
}

// start begins a line with the columns that all lines have.
func (d *dumper) start(offset int64, size int, word string) {
	d.line = appendRight(d.line, strconv.FormatInt(offset, 16), 8, '0')
	d.line = append(d.line, ' ')
	d.line = appendRight(d.line, strconv.Itoa(size), 5, ' ')
	d.line = append(append(d.line, ' '), word...)
}

func appendRight(b []byte, s string, width int, pad byte) []byte {
	for range width - len(s) {
		b = append(b, pad)
	}
	return append(b, s...)
}

func (d *dumper) key(name string) {
	d.line = append(append(append(d.line, ' '), name...), '=')
}

func (d *dumper) flush() error {
	_, err := d.w.Write(append(d.line, '\n'))
	d.line = d.line[:0]
	return err
}
