package mtrc

import (
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/dumptext"
	"rtrace-bpf/internal/window"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// The words of lines that are not events.
const (
	wordHeader  = "HEADER"
	wordTrailer = "TRAILER"
)

// field is one field of an event.
type field struct {
	name string
	form byte // number, address or text
}

// The forms of fields.
const (
	number  = 'n'
	address = 'a' // a hexadecimal number
	text    = 't' // a name
)

// fieldsOf returns the fields of a kind of event in order, or nil for an unknown kind.
// With source, events of blocks have the fields of the source, too.
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

// Dump writes the events of a file as text, one line each, from which Undump restores
// every byte. docs/formats/mtrc.md describes the lines.
//
// If the file is cut or breaks the format, Dump writes the rest in hexadecimal, as it
// does with bytes after the last trailer. It returns the *trace.SyntaxError after
// everything is written.
func Dump(w io.Writer, r io.Reader, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	d := dumper{Line: dumptext.Line{W: w}, s: &Scanner{in: window.New(r, window.Size), opts: o}}
	err := d.run()
	if _, syntax := errors.AsType[*trace.SyntaxError](err); err == nil || syntax {
		if e := d.Rest(&d.s.in); e != nil {
			return e
		}
	}
	return err
}

type dumper struct {
	dumptext.Line
	s *Scanner
}

func (d *dumper) run() error {
	if err := d.s.first(); err != nil {
		return err
	}
	at := int64(0) // offset of the stream
	for {
		if err := d.header(at); err != nil {
			return err
		}
		if err := d.events(); err != nil {
			return err
		}
		if d.s.Whole() {
			d.Start(d.s.Offset()-int64(len(wire.Magic)), len(wire.Magic), wordTrailer)
			if err := d.End(); err != nil {
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
		raw := in.Last(int(d.s.Offset() - d.s.last))
		d.Start(d.s.last, len(raw), string(raw[:1]))
		raw = raw[1:]
		for _, f := range fieldsOf(e.Kind, d.s.source) {
			raw = d.field(f, raw)
		}
		if err := d.End(); err != nil {
			return err
		}
	}
}

// field writes the field at the start of raw, which holds all of it, and returns the
// bytes that follow it.
func (d *dumper) field(f field, raw []byte) []byte {
	d.Key(f.name)
	if f.form == text {
		id, rest := raw[0], raw[1:]
		d.Text = strconv.AppendUint(d.Text, uint64(id&^wire.Define), 10)
		if id < wire.Define {
			return rest
		}
		end := 0
		for rest[end] != 0 {
			end++
		}
		d.Text = append(d.Text, ':')
		d.Text = strconv.AppendQuoteToASCII(d.Text, string(rest[:end]))
		return rest[end+1:]
	}
	v, n := binio.Uleb128(raw)
	base := 10
	if f.form == address {
		d.Text = append(d.Text, "0x"...)
		base = 16
	}
	d.Text = strconv.AppendUint(d.Text, v, base)
	if n != len(binio.AppendUleb128(nil, v)) {
		d.size(n) // longer than necessary
	}
	return raw[n:]
}

// size writes, after a number, how many bytes it takes.
func (d *dumper) size(n int) {
	d.Text = append(d.Text, '/')
	d.Text = strconv.AppendInt(d.Text, int64(n), 10)
}

func (d *dumper) header(at int64) error {
	h := d.s.Header()
	d.Start(at, int(d.s.Offset()-at), wordHeader)
	d.Key("words")
	d.Text = strconv.AppendInt(d.Text, int64(h.Words), 10)
	d.Key("endian")
	if h.Big {
		d.Text = append(d.Text, "big"...)
	} else {
		d.Text = append(d.Text, "little"...)
	}
	d.Key("version")
	d.Text = strconv.AppendUint(d.Text, h.Version, 10)
	if h.ShortVersion {
		d.size(4)
	}
	return d.End()
}
