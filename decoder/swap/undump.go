package swap

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/dumptext"
	wire "rtrace-bpf/internal/wire/swap"
)

const (
	// dumpFormat is the name of the text in errors.
	dumpFormat = "swap dump"
	// maxLine limits the length of a line in a dump: a payload of which all bytes are
	// escaped, with four characters each.
	maxLine = 5*wire.MaxMessage + 4096
)

// IsDump reports whether line is the first line of a dump.
func IsDump(line string) bool {
	columns := strings.Fields(line)
	return len(columns) > 2 && columns[2] == wordFile
}

// Undump writes the file that a text from Dump, DumpControl or DumpUI describes. It
// ignores the first two columns of a line and computes lengths and counts, so that
// lines can be edited by hand. An error in the text is a *trace.SyntaxError with the
// offset of the line; the bytes of the lines before it are written.
func Undump(w io.Writer, r io.Reader) error {
	var u undumper
	return dumptext.Undump(w, r, dumpFormat, maxLine, func(line string) ([]byte, error) {
		err := u.line(line)
		return u.bytes, err
	})
}

type undumper struct {
	kind    string // of the file
	formula bool   // of the message
	bytes   []byte // the bytes of the current line
	lexer   lexer
	values  []Value // of the message, as far as it was read
}

// line sets u.bytes to the bytes that a line describes. An empty line and a comment
// have none.
func (u *undumper) line(text string) error {
	l := &u.lexer
	u.bytes, l.rest = u.bytes[:0], text
	first := l.word()
	if first == "" || first[0] == '#' {
		return nil
	}
	l.word()
	word := l.word()
	switch {
	case word == wordFile:
		u.kind = l.word()
		if u.kind != fileMessages && u.kind != fileControl && u.kind != fileUI {
			return malformed("file of %q", u.kind)
		}
		return l.end()
	case word == dumptext.Raw:
		if err := l.key("data"); err != nil {
			return err
		}
		data, err := l.hex()
		if err != nil {
			return err
		}
		u.bytes = append(u.bytes, data...)
		return l.end()
	}
	var err error
	switch u.kind {
	case fileMessages:
		err = u.message(word)
	case fileControl:
		err = u.packet(word)
	case fileUI:
		err = malformed("%q is nothing of a UI hierarchy", word)
		if word == wire.UIFile.Name {
			err = u.payload(&wire.UIFile)
		}
	default:
		err = malformed("line before %s", wordFile)
	}
	if err != nil {
		return err
	}
	return l.end()
}

// message appends a message.
func (u *undumper) message(word string) error {
	l := &u.lexer
	def := wire.LookupName(word)
	var m Message
	var err error
	switch {
	case word == wordMessage:
		if m.ID, err = u.id(); err != nil {
			return err
		}
	case def != nil:
		m.ID = def.ID
	default:
		return malformed("%q is no message", word)
	}
	if err := l.key("seq"); err != nil {
		return err
	}
	n, err := l.uint(32)
	if err != nil {
		return err
	}
	m.Sequence = uint32(n)
	if m.Formula = l.has("formula"); !m.Formula {
		if err := l.key("time"); err != nil {
			return err
		}
	}
	if m.Seconds, m.Nanos, err = l.clock(); err != nil {
		return err
	}
	u.formula = m.Formula
	u.bytes = appendHeader(u.bytes, &m, 0)
	if word == wordMessage {
		err = u.data()
	} else {
		err = u.payload(def)
	}
	binary.LittleEndian.PutUint32(u.bytes[16:], uint32(len(u.bytes)-wire.HeaderSize))
	return err
}

// packet appends a packet of the control channel.
func (u *undumper) packet(word string) (err error) {
	u.formula = false
	id, def := uint32(0), (*wire.Message)(nil)
	if word == wordPacket {
		if id, err = u.id(); err != nil {
			return err
		}
	} else {
		for i := range wire.Controls {
			if wire.Controls[i].Name == word {
				def = &wire.Controls[i]
				id = def.ID
			}
		}
		if def == nil {
			return malformed("%q is no packet", word)
		}
	}
	u.bytes = binary.LittleEndian.AppendUint32(u.bytes, id)
	u.bytes = append(u.bytes, 0, 0, 0, 0)
	if def == nil {
		err = u.data()
	} else {
		err = u.payload(def)
	}
	binary.LittleEndian.PutUint32(u.bytes[4:], uint32(len(u.bytes)-wire.ControlHeaderSize))
	return err
}

func (u *undumper) id() (uint32, error) {
	if err := u.lexer.key("id"); err != nil {
		return 0, err
	}
	n, err := u.lexer.uint(32)
	return uint32(n), err
}

// data appends a payload written in hexadecimal.
func (u *undumper) data() error {
	if err := u.lexer.key("data"); err != nil {
		return err
	}
	data, err := u.lexer.hex()
	u.bytes = append(u.bytes, data...)
	return err
}

// payload appends a payload written as fields.
func (u *undumper) payload(def *wire.Message) error {
	l := &u.lexer
	if def.Layouts == nil {
		return malformed("the fields of %s are not known", def.Name)
	}
	layout := &def.Layouts[0]
	if l.has("layout") {
		name := l.value()
		layout = nil
		for i := range def.Layouts {
			if def.Layouts[i].Name == name {
				layout = &def.Layouts[i]
			}
		}
		if layout == nil {
			return malformed("%s has no layout %q", def.Name, name)
		}
	}
	u.values = u.values[:0]
	if err := u.fields(layout.Fields, def.Tail, wire.Common); err != nil {
		return err
	}
	for i := range u.values {
		u.bytes = appendValue(u.bytes, &u.values[i], u.formula)
	}
	if l.has("tail") {
		data, err := l.hex()
		if err != nil {
			return err
		}
		u.bytes = append(u.bytes, data...)
	}
	return nil
}

// fields reads the values of the fields in order.
func (u *undumper) fields(fields []wire.Field, tail string, common int) error {
	for i := range fields {
		f := &fields[i]
		if f.If != "" {
			p := parser{values: u.values}
			if !p.wanted(f) {
				continue
			}
		}
		name := f.Name
		if tail != "" && i >= common {
			name = tail + "." + name
		}
		if err := u.lexer.key(name); err != nil {
			return err
		}
		if err := u.value(f); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return nil
}
