package swap

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// rawLine is how many bytes a RAW line holds at most.
const rawLine = 64

// The words of lines that are no known messages.
const (
	wordFile    = "SWAP"
	wordMessage = "MESSAGE"
	wordPacket  = "PACKET"
	wordRaw     = "RAW"
)

// The kinds of files that a dump is of.
const (
	fileMessages = "messages"
	fileControl  = "control"
	fileUI       = "ui"
)

// Dump writes the messages of a file as text, one line each, from which Undump
// restores every byte. docs/formats/swap.md describes the lines. It returns how
// many messages do not parse; those are written in hexadecimal, or what is wrong
// with them is marked.
//
// Where the file is cut, or a length is impossible, all the rest is written in
// hexadecimal; Dump then returns the *trace.SyntaxError that tells why, with
// everything written.
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
	for err = s.Next(&m); err == nil; err = s.Next(&m) {
		if err = d.message(&m); err != nil {
			break
		}
	}
	return d.damaged, d.finish(err)
}

// newDumper returns a dumper whose messages come out of in.
func newDumper(w io.Writer, in *input, o Options) *dumper {
	return &dumper{w: w, in: in, strict: o.Strict, parser: Parser{opts: o}}
}

type dumper struct {
	w       io.Writer
	in      *input
	strict  bool
	parser  Parser
	fields  Fields
	line    []byte
	again   []byte // the payload as Undump would restore it
	damaged uint64
}

// finish writes what is left after err, and returns that unless it is io.EOF.
func (d *dumper) finish(err error) error {
	_, syntax := errors.AsType[*trace.SyntaxError](err)
	if !syntax && !errors.Is(err, io.EOF) {
		return err
	}
	if e := d.rest(); e != nil {
		return e
	}
	if syntax {
		return err
	}
	return nil
}

// file writes the line that tells what the dump is of.
func (d *dumper) file(kind string) error {
	d.start(0, 0, wordFile)
	d.line = append(append(d.line, ' '), kind...)
	return d.flush()
}

// message writes the line of a message by its fields if they say everything about
// it, else in hexadecimal.
func (d *dumper) message(m *Message) error {
	err := d.parser.Parse(m, &d.fields)
	if err = d.damage(m.Offset, m.ID, err); err != nil && d.strict {
		return err
	}
	size := wire.HeaderSize + len(m.Data)
	if d.exact(m.Data, m.Formula) {
		d.start(m.Offset, size, d.fields.Message.Name)
		d.head(m)
		d.known()
		return d.flush()
	}
	d.start(m.Offset, size, wordMessage)
	d.key("id")
	d.line = appendHex(d.line, uint64(m.ID))
	d.head(m)
	d.unknown(m.Data, err)
	return d.flush()
}

// damage counts a message that does not parse and returns what is wrong with it.
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

// messageError says which message is wrong.
type messageError struct {
	name string
	err  error
}

func (e *messageError) Error() string { return "message " + e.name + ": " + e.err.Error() }
func (e *messageError) Unwrap() error { return e.err }

// exact says whether the fields restore the payload.
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

// head writes what all messages have.
func (d *dumper) head(m *Message) {
	d.key("seq")
	d.line = strconv.AppendUint(d.line, uint64(m.Sequence), 10)
	if m.Formula {
		d.key("formula")
	} else {
		d.key("time")
	}
	d.line = appendClock(d.line, m.Seconds, m.Nanos)
}

// known writes the fields.
func (d *dumper) known() {
	def, l := d.fields.Message, d.fields.Layout
	if l != &def.Layouts[0] {
		d.key("layout")
		d.line = append(d.line, l.Name...)
	}
	d.line, _ = appendFields(d.line, l.Fields, d.fields.Values, def.Tail, wire.Common)
	if len(d.fields.Tail) > 0 {
		d.key("tail")
		d.line = hex.AppendEncode(d.line, d.fields.Tail)
	}
}

// unknown writes a payload, and why it is not known.
func (d *dumper) unknown(data []byte, err error) {
	d.key("data")
	d.line = hex.AppendEncode(d.line, data)
	if why, ok := errors.AsType[*messageError](err); ok && d.fields.Message != nil {
		d.line = append(append(d.line, " # "...), why.name...)
		d.line = append(append(d.line, ": "...), why.err.Error()...)
	}
}

// rest writes what cannot be split into messages.
func (d *dumper) rest() error {
	in := d.in
	for in.have(1) {
		in.have(rawLine)
		b := in.window()
		b = b[:min(len(b), rawLine)]
		d.start(in.base+int64(in.pos), len(b), wordRaw)
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

func (d *dumper) key(name string) {
	d.line = append(append(append(d.line, ' '), name...), '=')
}

func (d *dumper) flush() error {
	_, err := d.w.Write(append(d.line, '\n'))
	d.line = d.line[:0]
	return err
}
