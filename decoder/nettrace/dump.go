package nettrace

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/dumptext"
	wire "rtrace-bpf/internal/wire/nettrace"
)

// Dump writes a stream as text: a line for each object or block, and one for each
// description, stack, event, thread and so on in it, in the order of the stream. Each
// line begins with the offset in hexadecimal and the number of bytes.
// docs/formats/nettrace.md describes the lines. Undump restores the stream from the
// text. If the stream is cut or breaks the format, Dump writes the rest as bytes and
// returns the *trace.SyntaxError after everything is written.
func Dump(w io.Writer, r io.Reader, o Options) error {
	d := &dumper{Line: dumptext.Line{W: w}}
	s := &Scanner{in: input{r: r, consumed: d.take}, opts: o, dump: d}
	err := s.head()
	for err == nil && d.err == nil {
		_, err = s.Next()
	}
	if d.err == nil {
		d.rest(s)
	}
	switch {
	case d.err != nil:
		return d.err
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// dumper writes lines. A nil dumper writes none.
type dumper struct {
	dumptext.Line
	err  error
	info Info
	v6   bool

	// unwritten holds the bytes that were read and are in no line yet. They begin at offset
	// base.
	unwritten []byte
	base      int64

	open       bool           // the trace object or a block of version 4 still lacks its end tag
	from, end  int64          // start and end of the block's payload, as far as it was read
	size       int            // size in the block's header
	kind       wire.BlockKind // of the block
	compressed bool           // events have compressed headers
	before     twinEvent      // the last event of the block
	canonical  []byte         // reused
}

func (d *dumper) take(b []byte) { d.unwritten = append(d.unwritten, b...) }

// until returns the bytes that were read up to an offset. They count as written.
func (d *dumper) until(end int64) []byte {
	n := int(min(max(end-d.base, 0), int64(len(d.unwritten))))
	b := d.unwritten[:n]
	d.unwritten, d.base = d.unwritten[n:], d.base+int64(n)
	return b
}

// finish ends a line for the bytes that were read up to an offset. If they are not the
// canonical ones, the line gets the bytes, too.
func (d *dumper) finish(end int64, canonical []byte) {
	if b := d.until(end); !bytes.Equal(b, canonical) {
		d.Hex("raw", b)
	}
	d.line()
}

func (d *dumper) line() {
	if d.err == nil {
		d.err = d.End()
	}
}

// raw writes lines of bytes up to an offset.
func (d *dumper) raw(word string, end int64) {
	for d.base < end && len(d.unwritten) > 0 && d.err == nil {
		at := d.base
		b := d.until(min(end, at+rawLine))
		d.Start(at, len(b), word)
		d.Hex("data", b)
		d.line()
	}
}

const rawLine = 64 // bytes in a line of only bytes

// close ends what was begun; in version 4 that takes a tag.
func (d *dumper) close() {
	if d.kind != wire.BlockTrace {
		d.raw(wordBytes, d.end)
	}
	tagged := !d.v6 && len(d.unwritten) > 0 && d.unwritten[0] == wire.TagEndObject
	whole := d.kind == wire.BlockTrace || d.end-d.from == int64(d.size)
	switch {
	case !d.open:
		return
	case tagged && whole:
		d.until(d.base + 1)
	case !whole || !d.v6:
		d.Start(d.end, 0, wordCut)
		d.number("size", uint64(d.size))
		d.line()
	}
	d.open = false
}

// finished records the regular end of the stream, whose tag begins at the given offset.
func (d *dumper) finished(begin int64) {
	d.close()
	d.raw(dumptext.Raw, begin)
	end := []byte{wire.TagNull}
	if d.v6 {
		end = make([]byte, 4)
	}
	if bytes.Equal(d.unwritten, end) {
		d.Start(d.base, len(end), wordEnd)
		d.finish(d.base+int64(len(end)), end)
	}
}

// rest writes the bytes that are in no line yet, up to the end of the input.
func (d *dumper) rest(s *Scanner) {
	if d.open && len(d.unwritten) == int(max(d.end-d.base, 0)) {
		s.in.bytes(1) // the tag may follow
	}
	d.close()
	for d.err == nil {
		got := s.in.skip(64 << 10)
		if got > 0 && len(d.unwritten) < rawLine {
			continue
		}
		end := d.base + int64(len(d.unwritten))
		if got > 0 {
			end -= int64(len(d.unwritten)) % rawLine
		}
		d.raw(dumptext.Raw, end)
		if got == 0 {
			return
		}
	}
}

func (d *dumper) number(name string, v uint64) {
	d.Key(name)
	d.Text = strconv.AppendUint(d.Text, v, 10)
}

func (d *dumper) text(name, v string) {
	d.Key(name)
	d.Text = strconv.AppendQuoteToASCII(d.Text, v)
}

func (d *dumper) head(i *Info) {
	d.info, d.v6 = *i, i.Major >= wire.MajorV6
	d.Start(0, 0, wordTrace)
	d.number("major", uint64(i.Major))
	d.number("minor", uint64(i.Minor))
	d.Key("time")
	for n, v := range i.Time {
		if n > 0 {
			d.Text = append(d.Text, ',')
		}
		d.Text = strconv.AppendUint(d.Text, uint64(v), 10)
	}
	d.number("sync", i.Sync)
	d.number("frequency", i.Frequency)
	d.number("pointer", uint64(i.PointerSize))
	d.number("pid", uint64(i.ProcessID))
	d.number("processors", uint64(i.Processors))
	d.number("sampling", uint64(i.Sampling))
	for _, p := range i.Pairs {
		d.text(strconv.QuoteToASCII(p.Key), p.Value)
	}
	d.finish(d.base+int64(len(d.unwritten)), appendTrace(nil, i))
	d.open, d.kind, d.end = !d.v6, wire.BlockTrace, d.base
}

// block writes the line of an object or block of size bytes that begins at offset
// begin. b is as much of it as was read.
func (d *dumper) block(kind wire.BlockKind, b []byte, begin, at int64, size int) {
	if d == nil {
		return
	}
	d.close()
	d.raw(dumptext.Raw, begin) // the kind is unknown
	d.Start(at, len(b), wordBlock)
	d.text("name", kind.String())
	var h blockHead
	n := readBlockHead(b, d.v6, kind, &h)
	d.canonical = appendBlock(d.canonical[:0], begin, d.v6, kind, size)
	if fields := blockFields(d.v6, kind, &h); n > 0 {
		for _, f := range fields {
			d.number(f.name, f.get())
		}
		d.canonical = appendBlockHead(d.canonical, d.v6, kind, &h)
	} else if fields != nil || withSize(kind) {
		d.number("head", 0) // the header is not whole
	}
	d.finish(at+int64(n), d.canonical)
	d.open, d.kind, d.from, d.end, d.size = true, kind, at, at+int64(len(b)), size
	d.compressed, d.before = h.flags&wire.FlagCompressed != 0, twinEvent{}
}

func (d *dumper) metadata(m *wire.Metadata, at int64, size int) {
	d.Start(at, size, wordMetadata)
	d.number("id", uint64(m.ID))
	d.text("provider", m.Provider)
	d.number("event", uint64(m.EventID))
	d.text("name", m.Name)
	d.Key("keywords")
	d.Text = append(d.Text, "0x"...)
	d.Text = strconv.AppendUint(d.Text, m.Keywords, 16)
	d.number("version", uint64(m.Version))
	d.number("level", uint64(m.Level))
	d.number("opcode", uint64(m.Opcode))
	d.Key("fields")
	d.fields(m.Fields)
	d.finish(at+int64(size), nil)
}

func (d *dumper) fields(fields []wire.Field) {
	d.Text = append(d.Text, '(')
	for i := range fields {
		if i > 0 {
			d.Text = append(d.Text, ',')
		}
		d.Text = strconv.AppendQuoteToASCII(d.Text, fields[i].Name)
		d.Text = append(d.Text, ':')
		d.kindOf(&fields[i])
	}
	d.Text = append(d.Text, ')')
}

// kindOf writes a type. The type of elements is in brackets.
func (d *dumper) kindOf(f *wire.Field) {
	d.Text = append(d.Text, f.Type.String()...)
	switch {
	case f.Type == wire.TypeObject:
		d.fields(f.Fields)
	case f.Element != nil:
		d.Text = append(d.Text, '[')
		d.kindOf(f.Element)
		if f.Type == wire.TypeFixedArray {
			d.Text = strconv.AppendInt(append(d.Text, ';'), int64(f.Count), 10)
		}
		d.Text = append(d.Text, ']')
	}
}

func (d *dumper) stack(id uint32, frames []uint64, at int64, size int) {
	d.Start(at, size, wordStack)
	d.number("id", uint64(id))
	d.Key("frames")
	for i, f := range frames {
		if i > 0 {
			d.Text = append(d.Text, ',')
		}
		d.Text = append(d.Text, "0x"...)
		d.Text = strconv.AppendUint(d.Text, f, 16)
	}
	d.canonical = appendStack(d.canonical[:0], d.info.PointerSize, frames)
	d.finish(at+int64(size), d.canonical)
}

// event writes the line of an event, given the places in the block where it and its
// payload begin.
func (d *dumper) event(h *head, m *wire.Metadata, block []byte, from, at int) {
	end := at + int(h.Size)
	payload := block[at:end]
	d.Start(d.from+int64(from), end-from, wordEvent)
	d.number("metadata", uint64(h.Metadata))
	if m != nil {
		d.text("provider", m.Provider)
		d.number("event", uint64(m.EventID))
		d.text("name", m.Name)
	}
	d.number("sequence", uint64(h.Sequence))
	d.number("capture", h.Capture)
	d.number("thread", h.Thread)
	d.number("processor", uint64(h.Processor))
	d.number("stack", uint64(h.Stack))
	d.number("time", h.Time)
	if h.Labels != 0 {
		d.number("labels", uint64(h.Labels))
	}
	e := twinEvent{Head: h.Head}
	for _, id := range []struct {
		name string
		at   uint32
		to   *[16]byte
	}{{"activity", h.activity, &e.activity}, {"related", h.related, &e.related}} {
		if id.at != 0 {
			copy(id.to[:], block[id.at:])
			d.Hex(id.name, id.to[:])
		}
	}
	d.Key("sorted")
	d.Text = strconv.AppendBool(d.Text, h.Sorted)
	if d.compressed {
		e.flags = block[from]
		d.Key("flags")
		d.Text = strconv.AppendUint(append(d.Text, "0x"...), uint64(e.flags), 16)
	}
	d.Key("payload")
	d.Text = hex.AppendEncode(d.Text, payload)
	d.canonical = append(appendEvent(d.canonical[:0], d.v6, d.compressed, &e, &d.before), payload...)
	d.finish(d.from+int64(end), d.canonical)
	d.before = e
}

// thread writes what is known about a thread, in a line with the given word.
func (d *dumper) thread(word string, t *Thread, at int64, size int) {
	if d == nil {
		return
	}
	d.Start(at, size, word)
	d.number("index", t.Index)
	d.number("pid", t.Process)
	d.number("tid", t.ID)
	d.text("name", t.Name)
	d.finish(at+int64(size), nil)
}

// last writes the number of a thread's last event, as in a sequence point or a removal.
func (d *dumper) last(word string, id uint64, seq uint32, time uint64, at int64, size int) {
	if d == nil {
		return
	}
	d.Start(at, size, word)
	d.number("thread", id)
	d.number("sequence", uint64(seq))
	d.number("time", time)
	d.canonical = appendLast(d.canonical[:0], d.v6, id, seq)
	d.finish(at+int64(size), d.canonical)
}

func (d *dumper) labels(index uint32, l *Labels, at int64, size int) {
	if d == nil {
		return
	}
	d.Start(at, size, wordLabels)
	d.number("index", uint64(index))
	for _, a := range appendContext(nil, &Event{Labels: l}) {
		d.text(strconv.QuoteToASCII(a.Name), a.Value)
	}
	for _, o := range []struct {
		name  string
		value *uint8
	}{{"opcode", l.Opcode}, {"level", l.Level}, {"version", l.Version}} {
		if o.value != nil {
			d.number(o.name, uint64(*o.value))
		}
	}
	if l.Keywords != nil {
		d.number("keywords", *l.Keywords)
	}
	d.finish(at+int64(size), nil)
}
