package swap

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"rtrace-bpf/internal/dumptext"
	"rtrace-bpf/internal/window"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// The words of lines that are not known messages.
const (
	wordFile    = "SWAP"
	wordMessage = "MESSAGE"
	wordPacket  = "PACKET"
)

// The kinds of files that a dump can be of.
const (
	fileMessages = "messages"
	fileControl  = "control"
	fileUI       = "ui"
)

// Dump writes the messages of a file as text, one line each, from which Undump restores
// every byte. docs/formats/swap.md describes the lines. It returns how many messages do
// not parse; it writes those in hexadecimal, or marks what is wrong with them.
//
// If the file is cut or a length is impossible, Dump writes the rest in hexadecimal. It
// returns the *trace.SyntaxError after everything is written. It also returns one for a
// stream without the end that it announces.
func Dump(w io.Writer, r io.Reader, o Options) (damaged uint64, err error) {
	s, err := NewScanner(r, o)
	if err != nil {
		return 0, err
	}
	d := newDumper(w, &s.in, o)
	if err := d.file(fileMessages); err != nil {
		return 0, err
	}
	var m Message
	open := false // an end was announced and has not come yet
	for err = s.Next(&m); err == nil; err = s.Next(&m) {
		if m.ID == wire.End && len(m.Data) == 4 {
			open = m.Offset == 0 && m.Data[0] == 0 || open && m.Data[0] != 1
		}
		if err = d.message(&m); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) && open {
		err = syntaxError(s.in.Offset(), trace.ErrUnfinished)
	}
	return d.damaged, d.finish(err)
}

// newDumper returns a dumper of messages from in.
func newDumper(w io.Writer, in *window.Window, o Options) *dumper {
	return &dumper{Line: dumptext.Line{W: w}, in: in, strict: o.Strict, parser: Parser{opts: o}}
}

type dumper struct {
	dumptext.Line
	in      *window.Window
	strict  bool
	parser  Parser
	fields  Fields
	again   []byte // the payload as Undump would restore it
	damaged uint64
}

// finish writes the rest of the input after err, and returns err unless it is io.EOF.
func (d *dumper) finish(err error) error {
	_, syntax := errors.AsType[*trace.SyntaxError](err)
	if !syntax && !errors.Is(err, io.EOF) {
		return err
	}
	if e := d.Rest(d.in); e != nil {
		return e
	}
	if syntax {
		return err
	}
	return nil
}

// file writes the line with the kind of the file.
func (d *dumper) file(kind string) error {
	d.Start(0, 0, wordFile)
	d.Text = append(append(d.Text, ' '), kind...)
	return d.End()
}

// message writes the line of a message: its fields if they restore every byte, else in
// hexadecimal.
func (d *dumper) message(m *Message) error {
	err := d.parser.Parse(m, &d.fields)
	if err = d.damage(m.Offset, m.ID, err); err != nil && d.strict {
		return err
	}
	size := wire.HeaderSize + len(m.Data)
	if d.exact(m.Data, m.Formula) {
		d.Start(m.Offset, size, d.fields.Message.Name)
		d.head(m)
		d.known()
		return d.End()
	}
	d.Start(m.Offset, size, wordMessage)
	d.Key("id")
	d.Text = appendHex(d.Text, uint64(m.ID))
	d.head(m)
	d.unknown(m.Data, err)
	return d.End()
}

// damage counts a message that does not parse and returns its error.
func (d *dumper) damage(offset int64, id uint32, err error) error {
	if err == nil && d.fields.Flawed {
		err = malformed("a string has no end")
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, errUnknown) {
		d.damaged++
	}
	name := "0x" + strconv.FormatUint(uint64(id), 16)
	if d.fields.Message != nil {
		name = d.fields.Message.Name
	}
	return syntaxError(offset, &messageError{name, err})
}

// messageError is an error in a named message.
type messageError struct {
	name string
	err  error
}

func (e *messageError) Error() string { return "message " + e.name + ": " + e.err.Error() }
func (e *messageError) Unwrap() error { return e.err }

// exact reports whether the fields restore the payload.
func (d *dumper) exact(data []byte, formula bool) bool {
	if d.fields.Layout == nil {
		return false
	}
	d.again = d.again[:0]
	for i := range d.fields.Values {
		d.again = appendValue(d.again, &d.fields.Values[i], formula)
	}
	return bytes.Equal(append(d.again, d.fields.Tail...), data)
}

// head writes the header that all messages have.
func (d *dumper) head(m *Message) {
	d.Key("seq")
	d.Text = strconv.AppendUint(d.Text, uint64(m.Sequence), 10)
	if m.Formula {
		d.Key("formula")
	} else {
		d.Key("time")
	}
	d.Text = appendClock(d.Text, m.Seconds, m.Nanos)
}

// known writes the fields.
func (d *dumper) known() {
	def, l := d.fields.Message, d.fields.Layout
	if l != &def.Layouts[0] {
		d.Key("layout")
		d.Text = append(d.Text, l.Name...)
	}
	d.Text, _ = appendFields(d.Text, l.Fields, d.fields.Values, def.Tail, wire.Common)
	if len(d.fields.Tail) > 0 {
		d.Key("tail")
		d.Text = hex.AppendEncode(d.Text, d.fields.Tail)
	}
}

// unknown writes a payload in hexadecimal, and why its fields are not known.
func (d *dumper) unknown(data []byte, err error) {
	d.Key("data")
	d.Text = hex.AppendEncode(d.Text, data)
	if why, ok := errors.AsType[*messageError](err); ok && d.fields.Message != nil {
		d.Text = append(append(d.Text, " # "...), why.name...)
		d.Text = append(append(d.Text, ": "...), why.err.Error()...)
	}
}
