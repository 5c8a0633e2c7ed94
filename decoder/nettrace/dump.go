package nettrace

import (
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/dumptext"
	wire "rtrace-bpf/internal/wire/nettrace"
)

// Dump writes a stream as text: a line for each object or block, and one for each
// description, stack, event, thread and so on in it, in the order of the stream. Each begins with the
// offset in base 16 and the bytes that it takes. docs/formats/nettrace.md describes the lines. Where the stream is cut or
// breaks the format Dump returns the *trace.SyntaxError that tells why, with
// everything before it written.
func Dump(w io.Writer, r io.Reader, o Options) error {
	d := &dumper{Line: dumptext.Line{W: w}}
	s := &Scanner{in: input{r: r}, opts: o, dump: d}
	s.stats.Objects = make(map[string]uint64)
	if err := s.head(); err != nil {
		return errors.Join(err, d.err)
	}
	for d.err == nil {
		if _, err := s.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if d.err != nil {
				return d.err
			}
			return err
		}
	}
	return d.err
}

// dumper writes lines. A nil one writes none.
type dumper struct {
	dumptext.Line
	err error
}

func (d *dumper) number(name string, v uint64) {
	d.Key(name)
	d.Text = strconv.AppendUint(d.Text, v, 10)
}

func (d *dumper) text(name, v string) {
	d.Key(name)
	d.Text = strconv.AppendQuoteToASCII(d.Text, v)
}

func (d *dumper) end() {
	if d.err == nil {
		d.err = d.End()
	}
}

func (d *dumper) head(i *Info) {
	d.Start(0, 0, "TRACE")
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
	d.end()
}

// block writes the line of an object or block.
func (d *dumper) block(at int64, size int, name string) {
	if d == nil {
		return
	}
	d.Start(at, size, "BLOCK")
	d.text("name", name)
	d.end()
}

func (d *dumper) metadata(m *wire.Metadata, at int64, size int) {
	d.Start(at, size, "METADATA")
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
	d.end()
}

func (d *dumper) fields(fields []wire.Field) {
	d.Text = append(d.Text, '(')
	for i := range fields {
		if i > 0 {
			d.Text = append(d.Text, ',')
		}
		d.Text = strconv.AppendQuoteToASCII(d.Text, fields[i].Name)
		d.Text = append(d.Text, ':')
		d.kind(&fields[i])
	}
	d.Text = append(d.Text, ')')
}

// kind writes a type, that of elements in brackets.
func (d *dumper) kind(f *wire.Field) {
	d.Text = append(d.Text, f.Type.String()...)
	switch {
	case f.Type == wire.TypeObject:
		d.fields(f.Fields)
	case f.Element != nil:
		d.Text = append(d.Text, '[')
		d.kind(f.Element)
		if f.Type == wire.TypeFixedArray {
			d.Text = strconv.AppendInt(append(d.Text, ';'), int64(f.Count), 10)
		}
		d.Text = append(d.Text, ']')
	}
}

func (d *dumper) stack(id uint32, frames []uint64, at int64, size int) {
	d.Start(at, size, "STACK")
	d.number("id", uint64(id))
	d.Key("frames")
	for i, f := range frames {
		if i > 0 {
			d.Text = append(d.Text, ',')
		}
		d.Text = append(d.Text, "0x"...)
		d.Text = strconv.AppendUint(d.Text, f, 16)
	}
	d.end()
}

func (d *dumper) event(h *head, m *wire.Metadata, payload []byte, at int64, size int) {
	d.Start(at, size, "EVENT")
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
	d.Key("sorted")
	d.Text = strconv.AppendBool(d.Text, h.Sorted)
	d.Key("payload")
	d.Text = hex.AppendEncode(d.Text, payload)
	d.end()
}

// thread writes what is known of a thread, under the word given.
func (d *dumper) thread(word string, t *Thread, at int64, size int) {
	if d == nil {
		return
	}
	d.Start(at, size, word)
	d.number("index", t.Index)
	d.number("pid", t.Process)
	d.number("tid", t.ID)
	d.text("name", t.Name)
	d.end()
}

// number of the last event of a thread, as a sequence point or a removal has it.
func (d *dumper) last(word string, id uint64, seq uint32, time uint64, at int64, size int) {
	if d == nil {
		return
	}
	d.Start(at, size, word)
	d.number("thread", id)
	d.number("sequence", uint64(seq))
	d.number("time", time)
	d.end()
}

func (d *dumper) labels(index uint32, l *Labels, at int64, size int) {
	if d == nil {
		return
	}
	d.Start(at, size, "LABELS")
	d.number("index", uint64(index))
	r := Reader{}
	for _, a := range r.appendContext(nil, &Event{Labels: l}) {
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
	d.end()
}
