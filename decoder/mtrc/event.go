package mtrc

import (
	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// fields reads the fields of one record. After the first error every field reads as
// zero.
type fields struct {
	b   []byte
	i   int // bytes read; len(b) after an error
	err error
	odd odd
}

// odd counts what no writer produces in a record.
type odd struct {
	undefined uint8 // ids that were never defined
	zero      uint8 // definitions of id 0
	long      uint8 // names of more than wire.MaxName bytes
	high      uint8 // definitions of ids above wire.Names
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
	f.i = len(f.b)
}

// number reads a number. The case of one byte is short enough to be inlined.
func (f *fields) number() uint64 {
	if f.i < len(f.b) {
		if c := f.b[f.i]; c < 0x80 {
			f.i++
			return uint64(c)
		}
	}
	return f.longNumber()
}

func (f *fields) longNumber() uint64 {
	v, n := binio.Uleb128(f.b[f.i:])
	if n <= 0 {
		if n < 0 {
			f.fail(malformed("number of more than 64 bits"))
		} else {
			f.fail(errShort)
		}
		return 0
	}
	f.i += n
	return v
}

// name reads a name into *to.
func (f *fields) name(t *names, limit int, to *wire.Name) {
	if f.i >= len(f.b) {
		f.fail(errShort)
		return
	}
	c := f.b[f.i]
	f.i++
	if c < wire.Define {
		*to = t.byID[c]
		if c != 0 && !to.Known {
			f.odd.undefined++
		}
		return
	}
	f.define(t, c&^wire.Define, limit, to)
}

func (f *fields) define(t *names, id byte, limit int, to *wire.Name) {
	name, n, err := t.define(id, f.b[f.i:], limit)
	if err != nil {
		f.fail(err)
		return
	}
	f.i += n
	*to = name
	if id == 0 {
		f.odd.zero++
	}
	if id > wire.Names {
		f.odd.high++
	}
	if n > wire.MaxName+1 {
		f.odd.long++
	}
}

// event parses the record at the start of b, which is not empty, into e. It returns
// errEnd if there is no record, and errShort if the record continues after b. Parsing
// it again with more bytes is harmless.
func (s *Scanner) event(b []byte, e *wire.Event) (int, odd, error) {
	f := fields{b: b, i: 1}
	e.Kind = wire.Kind(b[0])
	switch e.Kind {
	case wire.Alloc, wire.Realloc:
		e.Index = f.number()
		e.Address = f.number()
		e.Size = f.number()
	case wire.Free:
		e.Index = f.number()
		e.Address, e.Size = 0, 0
	case wire.Heap, wire.Internal:
		e.Index = 0
		e.Address = f.number()
		e.Size = f.number()
		e.Source = wire.Source{}
		return f.i, odd{}, f.err
	default:
		return 0, odd{}, errEnd
	}
	if !s.source {
		e.Source = wire.Source{}
		return f.i, odd{}, f.err
	}
	e.Source.Thread = f.number()
	f.name(&s.functions, s.opts.MaxName, &e.Source.Function)
	f.name(&s.files, s.opts.MaxName, &e.Source.File)
	e.Source.Line = f.number()
	return f.i, f.odd, f.err
}
