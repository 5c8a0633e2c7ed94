package mtrc_test

import (
	"errors"
	"io"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// realTool reads a file as the unmodified 64-bit mptrace does, as far as large numbers
// and large files are concerned: its buffer of 8192 bytes, which is filled when fewer
// bytes are left than it looks ahead, and its decoding of numbers in a 32-bit int. It
// was written from a description of that program's behaviour; TestRealToolModel
// compares it with what the program printed.
type realTool struct {
	r      io.Reader
	buffer [8192]byte
	pos    int
	fill   int

	functions, files map[byte]wire.Name
}

var (
	errFormat  = errors.New("Invalid file format")          //nolint:staticcheck // as the tool says it
	errReading = errors.New("Error reading file")           //nolint:staticcheck // as the tool says it
	errVersion = errors.New("Tracing file version too new") //nolint:staticcheck // as the tool says it
	// errLost is the error for reading after the end of the buffer. What the tool reads
	// from there on is garbage.
	errLost = errors.New("lost its place")
)

// ahead makes n bytes available.
func (t *realTool) ahead(n int) bool {
	if t.fill-t.pos >= n {
		return true
	}
	t.fill = copy(t.buffer[:], t.buffer[t.pos:t.fill])
	t.pos = 0
	m, _ := io.ReadFull(t.r, t.buffer[t.fill:])
	t.fill += m
	return t.fill >= n
}

// number reads an unsigned LEB128 number as the tool does: it makes 5 bytes available,
// takes as many as the number has, and shifts an int by the distance modulo 32, as the
// processor does.
func (t *realTool) number() (uint64, error) {
	if !t.ahead(5) {
		return 0, errReading
	}
	var v int32
	for shift := uint(0); ; shift += 7 {
		if t.pos >= t.fill {
			return 0, errLost
		}
		c := t.buffer[t.pos]
		t.pos++
		v |= int32(c&0x7f) << (shift % 32)
		if c < 0x80 {
			return uint64(int64(v)), nil // converted to unsigned long: the sign is extended
		}
	}
}

func (t *realTool) name(table map[byte]wire.Name) (wire.Name, error) {
	if !t.ahead(1) {
		return wire.Name{}, errReading
	}
	c := t.buffer[t.pos]
	t.pos++
	if c < 0x80 {
		return table[c], nil
	}
	var text []byte
	for {
		if !t.ahead(1) {
			return wire.Name{}, errReading
		}
		b := t.buffer[t.pos]
		t.pos++
		if b == 0 {
			table[c&0x7f] = wire.Name{Text: string(text), Known: true}
			return table[c&0x7f], nil
		}
		text = append(text, b)
	}
}

// word reads a word of the header, which has 8 bytes in this machine's byte order.
func (t *realTool) word() (v uint64, err error) {
	if !t.ahead(8) {
		return 0, errReading
	}
	for i := range 8 {
		v |= uint64(t.buffer[t.pos+i]) << (8 * i)
	}
	t.pos += 8
	return v, nil
}

func (t *realTool) magic() bool {
	ok := t.ahead(4) && string(t.buffer[t.pos:t.pos+4]) == wire.Magic
	t.pos += 4
	return ok
}

// read calls do with each event until the tool would end, and returns the error with
// which it would.
func (t *realTool) read(r io.Reader, do func(*wire.Event)) error {
	*t = realTool{r: r, functions: map[byte]wire.Name{}, files: map[byte]wire.Name{}}
	if !t.magic() {
		return errFormat
	}
	order, err := t.word()
	if err != nil {
		return err
	}
	version, err := t.word()
	if err != nil {
		return err
	}
	if order != 1 {
		version = version>>56&0xff | version>>40&0xff00 // swapped
	}
	if version/100 > 105 {
		return errVersion
	}
	for {
		if !t.ahead(1) {
			return errReading
		}
		e := wire.Event{Kind: wire.Kind(t.buffer[t.pos])}
		var numbers []*uint64
		switch e.Kind {
		case wire.Alloc, wire.Realloc:
			numbers = []*uint64{&e.Index, &e.Address, &e.Size}
		case wire.Free:
			numbers = []*uint64{&e.Index}
		case wire.Heap, wire.Internal:
			numbers = []*uint64{&e.Address, &e.Size}
		default:
			if !t.magic() {
				return errFormat
			}
			return nil
		}
		t.pos++
		for _, n := range numbers {
			if *n, err = t.number(); err != nil {
				return err
			}
		}
		if version >= 10405 && e.Kind != wire.Heap && e.Kind != wire.Internal {
			if err := t.source(&e.Source); err != nil {
				return err
			}
		}
		do(&e)
	}
}

func (t *realTool) source(s *wire.Source) (err error) {
	if s.Thread, err = t.number(); err != nil {
		return err
	}
	if s.Function, err = t.name(t.functions); err != nil {
		return err
	}
	if s.File, err = t.name(t.files); err != nil {
		return err
	}
	s.Line, err = t.number()
	return err
}
