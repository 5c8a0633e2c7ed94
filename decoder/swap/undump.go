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
	// dumpFormat names the text in errors.
	dumpFormat = "swap dump"
	// maxLine limits a line of a dump: a payload of bytes that are all escaped,
	// four characters each.
	maxLine = 5*wire.MaxMessage + 4096
)

// IsDump reports whether a line is the first of what a Dump writes.
func IsDump(line string) bool {
	columns := strings.Fields(line)
	return len(columns) > 2 && columns[2] == wordFile
}

// Undump writes the file that a text by Dump, DumpControl or DumpUI describes. The
// first two columns of its lines are not read, and lengths and counts are computed,
// so that lines may be changed by hand. An error of the text is a *trace.SyntaxError
// whose offset is that of the line; what the lines before it stand for is written.
func Undump(w io.Writer, r io.Reader) error {
	var u undumper
	return dumptext.Undump(w, r, dumpFormat, maxLine, func(line string) ([]byte, error) {
		err := u.line(line)
		return u.bytes, err
	})
}

type undumper struct {
	kind    string // of file
	formula bool   // of the message
	bytes   []byte // what the line stands for
	lexer   lexer
	values  []Value // of the message, as far as it is read
}

// line sets bytes to what a line stands for: nothing for an empty line and a
// comment.
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

// data appends a payload that is given in hexadecimal.
func (u *undumper) data() error {
	if err := u.lexer.key("data"); err != nil {
		return err
	}
	data, err := u.lexer.hex()
	u.bytes = append(u.bytes, data...)
	return err
}

// payload appends a payload that is given by its fields.
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

// fields reads the values of fields in their order.
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
