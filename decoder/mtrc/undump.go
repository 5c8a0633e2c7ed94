package mtrc

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/dumptext"
	wire "rtrace-bpf/internal/wire/mtrc"
)

const (
	// dumpFormat is the name of the text in errors.
	dumpFormat = "mtrc dump"
	// maxLine limits the length of a line in a dump: two names of which all bytes are
	// escaped, with four characters each.
	maxLine = 8*DefaultMaxName + 4096
	// maxNumber limits how many bytes a number may take.
	maxNumber = binio.MaxUleb128
)

// IsDump reports whether line is the first line of the dump of a valid file.
func IsDump(line string) bool {
	columns := strings.Fields(line)
	return len(columns) > 2 && columns[2] == wordHeader
}

// Undump writes the file that a text from Dump describes. It ignores the first two
// columns of a line, so that lines can be edited by hand. An error in the text is a
// *trace.SyntaxError with the offset of the line; the bytes of the lines before it are
// written.
func Undump(w io.Writer, r io.Reader) error {
	var u undumper
	return dumptext.Undump(w, r, dumpFormat, maxLine, func(line string) ([]byte, error) {
		err := u.parse(line)
		return u.bytes, err
	})
}

type undumper struct {
	source bool   // events have a Source
	bytes  []byte // the bytes of the current line
	rest   string // what is left of the line
}

// parse sets u.bytes to the bytes that a line describes. An empty line and a comment
// have none.
func (u *undumper) parse(line string) error {
	u.bytes, u.rest = u.bytes[:0], line
	first := u.word()
	if first == "" || first[0] == '#' {
		return nil
	}
	u.word()
	switch word := u.word(); word {
	case wordHeader:
		return u.header()
	case wordTrailer:
		u.bytes = append(u.bytes, wire.Magic...)
		return u.end()
	case dumptext.Raw:
		digits, err := u.value("data")
		if err != nil {
			return err
		}
		if u.bytes, err = hex.AppendDecode(u.bytes, []byte(digits)); err != nil {
			return malformed("hexadecimal data")
		}
		return u.end()
	default:
		return u.event(word)
	}
}

func (u *undumper) event(word string) error {
	var list []field
	if len(word) == 1 {
		list = fieldsOf(wire.Kind(word[0]), u.source)
	}
	if list == nil {
		return malformed("%q is no record", word)
	}
	u.bytes = append(u.bytes, word[0])
	for _, f := range list {
		v, err := u.value(f.name)
		if err != nil {
			return err
		}
		if f.form == text {
			err = u.name(v)
		} else {
			err = u.number(v)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return u.end()
}

// number appends a number, written as V, or as V/N for one that takes N bytes.
func (u *undumper) number(v string) error {
	digits, size, sized := strings.Cut(v, "/")
	n, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		return malformed("number %q", v)
	}
	start := len(u.bytes)
	u.bytes = binio.AppendUleb128(u.bytes, n)
	if !sized {
		return nil
	}
	want, err := strconv.Atoi(size)
	if err != nil || want < len(u.bytes)-start || want > maxNumber {
		return malformed("number of %q bytes", size)
	}
	for len(u.bytes)-start < want {
		u.bytes[len(u.bytes)-1] |= 0x80
		u.bytes = append(u.bytes, 0)
	}
	return nil
}

// name appends a name, written as ID, or as ID:"TEXT" for a definition.
func (u *undumper) name(v string) error {
	id, quoted, defined := strings.Cut(v, ":")
	n, err := strconv.ParseUint(id, 10, 7)
	if err != nil {
		return malformed("id %q is not in 0 to %d", id, wire.MaxID)
	}
	if !defined {
		u.bytes = append(u.bytes, byte(n))
		return nil
	}
	name, err := strconv.Unquote(quoted)
	if err != nil || strings.Contains(name, "\x00") {
		return malformed("name %s", quoted)
	}
	u.bytes = append(u.bytes, byte(n)|wire.Define)
	u.bytes = append(append(u.bytes, name...), 0)
	return nil
}

func (u *undumper) header() error {
	var values [3]string
	for i, name := range []string{"words", "endian", "version"} {
		var err error
		if values[i], err = u.value(name); err != nil {
			return err
		}
	}
	var order binio.Order
	switch values[0] {
	case "4":
		order.Pointer = 4
	case "8":
		order.Pointer = 8
	default:
		return malformed("words of %q bytes", values[0])
	}
	switch values[1] {
	case "little":
	case "big":
		order.Big = true
	default:
		return malformed("endian %q", values[1])
	}
	digits, short := strings.CutSuffix(values[2], "/4")
	version, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return malformed("version %q", values[2])
	}
	u.source = wire.Header{Version: version}.HasSource()
	u.bytes = order.AppendPtr(append(u.bytes, wire.Magic...), 1)
	if short {
		order.Pointer = 4
	}
	u.bytes = order.AppendPtr(u.bytes, version)
	return u.end()
}

// word returns the next word of the line.
func (u *undumper) word() string {
	u.rest = strings.TrimLeft(u.rest, " \t\r")
	word, rest, _ := strings.Cut(u.rest, " ")
	u.rest = rest
	return strings.TrimRight(word, "\t\r")
}

// value returns the value of the next field of the line, which must have the given
// name: a word, or ID: with a quoted text that may contain spaces.
func (u *undumper) value(name string) (string, error) {
	u.rest = strings.TrimLeft(u.rest, " \t\r")
	rest, ok := strings.CutPrefix(u.rest, name+"=")
	if !ok {
		return "", malformed("%q where %s= should be", u.rest, name)
	}
	u.rest = rest
	if i := strings.IndexAny(rest, `: `); i >= 0 && rest[i] == ':' {
		quoted, err := strconv.QuotedPrefix(rest[i+1:])
		if err != nil {
			return "", malformed("%q where a name should be", rest[i+1:])
		}
		end := i + 1 + len(quoted)
		u.rest = rest[end:]
		return rest[:end], nil
	}
	return u.word(), nil
}

// end checks that only a comment follows.
func (u *undumper) end() error {
	if word := u.word(); word != "" && word[0] != '#' {
		return malformed("%q at the end of the line", word)
	}
	return nil
}
