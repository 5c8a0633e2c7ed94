package sprtrace

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/dumptext"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// dumpFormat is the name of the text in errors.
const dumpFormat = "sp-rtrace dump"

// maxLine limits the length of a line in a dump. A packet of DefaultMaxPacket bytes is
// longest as a string of which all bytes are escaped, with four characters each.
const maxLine = 5*DefaultMaxPacket + 4096

// Undump writes the trace that a text from Dump describes. It ignores the first two
// columns of a line and computes sizes and counts, so that lines can be edited by hand.
// An error in the text is a *trace.SyntaxError with the offset of the line; the packets
// of the lines before it are written.
func Undump(w io.Writer, r io.Reader) error {
	var u undumper
	return dumptext.Undump(w, r, dumpFormat, maxLine, func(line string) ([]byte, error) {
		err := u.parse(line)
		return u.packet, err
	})
}

type undumper struct {
	pk     packer
	layout bool // pk is known
	packet []byte
}

// parse sets u.packet to the packet that a line describes.
func (u *undumper) parse(line string) error {
	u.packet = u.packet[:0]
	s := scanner{rest: line}
	if s.atEnd() {
		return nil
	}
	s.word()
	s.word()
	switch word := s.word(); word {
	case dumptext.Raw:
		data, err := s.hex("data")
		if err != nil {
			return err
		}
		u.packet = append(u.packet, data...)
	case "HANDSHAKE":
		if err := u.handshake(&s); err != nil {
			return err
		}
	case "LAYOUT":
		return u.setLayout(s.rest)
	case "PACKET":
		if err := u.unknown(&s); err != nil {
			return err
		}
	default:
		if err := u.known(&s, word); err != nil {
			return err
		}
	}
	if !s.atEnd() {
		return malformed("%q at the end of the line", s.rest)
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, trace.ErrMalformed)...)
}

func (u *undumper) handshake(s *scanner) error {
	version, err := s.plain("version")
	if err != nil {
		return err
	}
	a, b, _ := strings.Cut(version, ".")
	major, err1 := strconv.ParseUint(a, 10, 8)
	minor, err2 := strconv.ParseUint(b, 10, 8)
	if err1 != nil || err2 != nil {
		return malformed("version %q", version)
	}
	if err := s.key("arch"); err != nil {
		return err
	}
	arch, err := s.quoted()
	if err != nil {
		return err
	}
	if len(arch) > wire.MaxArch {
		return fmt.Errorf("architecture name of %d bytes: %w", len(arch), trace.ErrLimit)
	}
	endian, err := s.number("endian", math.MaxUint8)
	if err != nil {
		return err
	}
	pointer, err := s.number("pointer", math.MaxUint8)
	if err != nil {
		return err
	}
	v := wire.Version(major)<<8 | wire.Version(minor)
	u.packet = wire.AppendHandshake(u.packet, v, arch, byte(endian), byte(pointer))
	return nil
}

func (u *undumper) setLayout(words string) error {
	pk := packer{}
	for word := range strings.FieldsSeq(words) {
		switch word {
		case wordTypeFirst:
			pk.sizeFirst = false
		case wordSizeFirst:
			pk.sizeFirst = true
		case wordLittle:
			pk.order.Big = false
		case wordBig:
			pk.order.Big = true
		case wordPointer4:
			pk.order.Pointer = 4
		case wordPointer8:
			pk.order.Pointer = 8
		case wordSwapped:
			pk.swapped = true
		default:
			return malformed("layout %q", word)
		}
	}
	if pk.order.Pointer == 0 {
		return malformed("layout without a pointer size")
	}
	u.pk, u.layout = pk, true
	return nil
}

func (u *undumper) unknown(s *scanner) error {
	if !u.layout {
		return malformed("packet before a LAYOUT line")
	}
	code, err := s.number("code", math.MaxUint32)
	if err != nil {
		return err
	}
	data, err := s.hex("data")
	if err != nil {
		return err
	}
	u.packet = append(u.pk.start(u.packet, uint32(code)), data...)
	u.pk.end(u.packet)
	return nil
}

// known builds a packet from its fields, in the order of the line.
func (u *undumper) known(s *scanner, word string) error {
	if !u.layout {
		return malformed("packet before a LAYOUT line")
	}
	def, code := wire.LookupName(word), uint32(0)
	if def != nil {
		code = def.Code
	} else if len(word) == 4 {
		code = binio.Order{}.U32([]byte(word))
		def = wire.LookupBuggy(code)
	}
	if def == nil {
		return malformed("%q is no packet", word)
	}
	u.packet = u.pk.start(u.packet, code)
	for !s.atEnd() {
		name, err := s.name()
		if err != nil {
			return err
		}
		if name == "rest" {
			data, err := s.hexDigits()
			if err != nil {
				return err
			}
			u.packet = append(u.packet, data...)
			break
		}
		f := findField(def, name)
		if f == nil {
			return malformed("%s has no field %q", word, name)
		}
		v := Value{Field: f}
		if err := u.value(s, &v); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		u.packet = u.pk.appendValue(u.packet, &v)
	}
	u.pk.end(u.packet)
	return nil
}

func findField(def *wire.Packet, name string) *wire.Field {
	for _, l := range def.Layouts {
		i := slices.IndexFunc(l.Fields, func(f wire.Field) bool { return f.Name == name })
		if i >= 0 {
			return &l.Fields[i]
		}
	}
	return nil
}

func (u *undumper) value(s *scanner, v *Value) (err error) {
	switch v.Field.Type {
	case wire.Dword, wire.Hex:
		v.Num, err = s.uint(math.MaxUint32)
	case wire.Signed:
		v.Num, err = s.signed()
	case wire.Pointer:
		v.Num, err = s.uint(u.maxPointer())
	case wire.String:
		v.Text, err = s.text()
	case wire.Frames:
		err = s.list(func() error {
			f, err := s.uint(u.maxPointer())
			v.Frames = append(v.Frames, f)
			return err
		})
	case wire.Texts, wire.Pairs:
		err = s.list(func() error {
			t, err := s.text()
			v.Texts = append(v.Texts, t)
			if err != nil || v.Field.Type == wire.Texts {
				return err
			}
			if !s.skip("=") {
				return malformed("argument without a value")
			}
			t, err = s.text()
			v.Texts = append(v.Texts, t)
			return err
		})
	}
	return err
}

func (u *undumper) maxPointer() uint64 {
	return math.MaxUint64 >> (64 - 8*u.pk.order.Pointer)
}
