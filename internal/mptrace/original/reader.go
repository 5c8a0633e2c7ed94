package original

import (
	"bytes"
	"encoding/binary"
	"io"

	wire "rtrace-bpf/internal/wire/mtrc"
)

const (
	bufferSize = 8192
	// needed is the number of bytes that must be left to read a number.
	needed = 5
	// maxRelease is the last release that the tool reads, as version/100.
	maxRelease = 105
)

// Reader reads the first stream of a file.
//
// Numbers may be longer than the part that the tool has buffered. The tool then
// reads past it: first old contents of the buffer, then other variables. The
// count of the bytes left, which is unsigned, becomes very large, so that
// nothing more is read from the file.
type Reader struct {
	build Build
	r     io.Reader
	buf   [bufferSize]byte
	pos   uint64
	left  uint64

	source           bool
	functions, files [wire.MaxID + 1]wire.Name
	text             []byte // of the current name
}

// NewReader reads the header. Errors of NewReader and Next are a Failure or a
// Crash.
func NewReader(r io.Reader, b Build) (*Reader, error) {
	t := &Reader{build: b, r: r}
	if err := t.magic(); err != nil {
		return nil, err
	}
	order, err := t.word(binary.LittleEndian)
	if err != nil {
		return nil, err
	}
	version, err := t.word(binary.LittleEndian)
	if err != nil {
		return nil, err
	}
	if order != 1 {
		version = t.swap(version)
	}
	if version/100 > maxRelease {
		return nil, TooNew
	}
	t.source = version >= wire.VersionSource
	return t, nil
}

// Next stores the next event in e. At the end of the stream it returns io.EOF.
func (t *Reader) Next(e *wire.Event) error {
	*e = wire.Event{}
	if t.fill(1) {
		e.Kind = wire.Kind(t.at(0))
	}
	var fields []*uint64
	switch e.Kind {
	case wire.Heap, wire.Internal:
		fields = []*uint64{&e.Address, &e.Size}
	case wire.Alloc, wire.Realloc:
		fields = []*uint64{&e.Index, &e.Address, &e.Size}
	case wire.Free:
		fields = []*uint64{&e.Index}
	default:
		if err := t.magic(); err != nil {
			return err
		}
		return io.EOF
	}
	t.skip(1)
	for _, f := range fields {
		if err := t.number(f); err != nil {
			return err
		}
	}
	if !t.source || e.Kind == wire.Heap || e.Kind == wire.Internal {
		return nil
	}
	return t.readSource(&e.Source)
}

func (t *Reader) readSource(s *wire.Source) error {
	if err := t.number(&s.Thread); err != nil {
		return err
	}
	if err := t.name(&t.functions, &s.Function); err != nil {
		return err
	}
	if err := t.name(&t.files, &s.File); err != nil {
		return err
	}
	return t.number(&s.Line)
}

// fill makes n bytes available, if the input has them. It reads as much as fits
// into the buffer.
func (t *Reader) fill(n uint64) bool {
	if t.left < n {
		copy(t.buf[:], t.buf[t.pos:t.pos+t.left])
		t.pos = 0
		m, _ := io.ReadFull(t.r, t.buf[t.left:])
		t.left += uint64(m)
	}
	return t.left >= n
}

// at returns byte i after the current position. The buffer is followed by a
// variable that is 1, and then by zeros.
func (t *Reader) at(i uint64) byte {
	switch i += t.pos; {
	case i < bufferSize:
		return t.buf[i]
	case i == bufferSize:
		return 1
	}
	return 0
}

func (t *Reader) skip(n uint64) {
	t.pos += n
	t.left -= n
}

func (t *Reader) bytes(b []byte) bool {
	n := uint64(len(b))
	if !t.fill(n) {
		return false
	}
	for i := range b {
		b[i] = t.at(uint64(i))
	}
	t.skip(n)
	return true
}

func (t *Reader) magic() error {
	var b [len(wire.Magic)]byte
	if !t.bytes(b[:]) {
		return ReadError
	}
	if string(b[:]) != wire.Magic {
		return InvalidFormat
	}
	return nil
}

func (t *Reader) word(order binary.ByteOrder) (uint64, error) {
	var b [8]byte
	w := b[:t.build.words]
	if !t.bytes(w) {
		return 0, ReadError
	}
	if t.build.words == 4 {
		return uint64(order.Uint32(w)), nil
	}
	return order.Uint64(w), nil
}

// swap reverses the bytes of a word.
func (t *Reader) swap(v uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return binary.BigEndian.Uint64(b[:]) >> (64 - 8*t.build.words)
}

// number reads a number. The builds AsIs decode it in 32 bits, with the
// processor's shifts, which use only 5 bits of the distance, and then extend
// its sign.
func (t *Reader) number(to *uint64) error {
	if !t.fill(t.build.ahead) && t.left < needed {
		return ReadError
	}
	var v uint64
	n := uint64(0)
	for more := true; more; n++ {
		c := t.at(n)
		more = c >= 0x80
		if shift := 7 * n; t.build.wide {
			v |= uint64(c&0x7f) << (shift & 63)
		} else {
			v |= uint64(uint32(c&0x7f) << (shift & 31))
		}
	}
	if !t.build.wide {
		v = uint64(int32(uint32(v)))
	}
	t.skip(n)
	*to = t.build.mask(v)
	return nil
}

// name reads a name. An undefined id is no name.
func (t *Reader) name(table *[wire.MaxID + 1]wire.Name, to *wire.Name) error {
	if !t.fill(1) {
		return ReadError
	}
	c := t.at(0)
	t.skip(1)
	id := c &^ wire.Define
	if id > t.build.maxID || c == wire.Define && !t.build.wide {
		return Crash(id)
	}
	if c < wire.Define {
		*to = table[id]
		return nil
	}
	t.text = t.text[:0]
	for {
		if !t.fill(1) {
			return ReadError
		}
		c := t.at(0)
		t.skip(1)
		if c == 0 {
			break
		}
		if len(t.text) == wire.MaxName {
			return Overflow
		}
		t.text = append(t.text, c)
	}
	if !bytes.Equal(t.text, []byte(table[id].Text)) || !table[id].Known {
		table[id] = wire.Name{Text: string(t.text), Known: true}
	}
	*to = table[id]
	if id == 0 {
		table[0] = wire.Name{}
	}
	return nil
}
