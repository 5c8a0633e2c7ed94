package swap

import (
	"bytes"
	"encoding/binary"
	"fmt"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Value is the value of a field. Lists are flat: the value of the list is followed by
// the values of the fields of each element. An Items is flat, too. Values point into
// the payload.
type Value struct {
	Field  *wire.Field // nil for a value within an Items
	Letter byte        // of an item
	// Num is a number by its bits (sign-extended; Float and Double in their IEEE form),
	// the seconds of a Time, the number of elements of a List or Items, or the pointer
	// of an array.
	Num   uint64
	Nanos uint32 // of a Time
	Text  []byte // of a String without its NUL, of Sized and Rest; the elements of an array
	Cut   bool   // the string has no NUL: it takes the rest of the payload
}

// Fields is a parsed message.
type Fields struct {
	Message *wire.Message // nil if its id is unknown
	Layout  *wire.Layout  // nil if its fields are unknown
	Values  []Value
	Tail    []byte // the bytes after the fields
	Flawed  bool   // a string has no NUL
}

var (
	errShort    = malformed("payload is too short")
	errUnlikely = malformed("unlikely value")
	errLetter   = malformed("unknown letter of an argument")
	errUnknown  = fmt.Errorf("its id is %w", trace.ErrUnsupported)
)

// parser parses payloads.
type parser struct {
	formula       bool
	cpus, devices int // numbers of elements of lists that have no count
	data          []byte
	off           int
	values        []Value
	unsure        bool // a field fails its Check
	flawed        bool
	// With search, parsing ends at the first unlikely value; left is how many more
	// values it may try.
	search bool
	left   int
}

// Parser parses messages.
type Parser struct {
	opts Options
	cpus int // derived from an earlier SYSTEM
}

// NewParser returns a parser.
func NewParser(o Options) (*Parser, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Parser{opts: o}, nil
}

// Parse parses the payload of a message. It appends the values to dst.Values[:0]; they
// point into m.Data. SYSTEM does not contain the number of processors: if the Options
// do not have it either, Parse uses the most likely number.
func (t *Parser) Parse(m *Message, dst *Fields) error {
	err := t.parse(wire.Lookup(m.ID), m.Data, m.Formula, dst)
	if m.ID >= wire.FirstPrivate && dst.Message != nil && (err != nil || dst.Flawed || len(dst.Tail) > 0) {
		// These numbers are free for private use, so this is another writer's message.
		*dst = Fields{Values: dst.Values[:0]}
		return errUnknown
	}
	return err
}

func (t *Parser) parse(def *wire.Message, data []byte, formula bool, dst *Fields) error {
	*dst = Fields{Message: def, Values: dst.Values[:0]}
	if def == nil {
		return errUnknown
	}
	if def.Layouts == nil {
		dst.Tail = data
		return nil
	}
	p := parser{formula: formula, data: data, cpus: t.opts.CPUs, devices: t.opts.Devices}
	if p.devices == 0 {
		p.devices = len(wire.Devices)
	}
	if def.ID != wire.System || t.opts.CPUs != 0 {
		return p.best(def, dst)
	}
	if p.cpus = t.cpus; t.cpus == 0 || p.best(def, dst) != nil || len(dst.Tail) > 0 || p.unsure {
		p.cpus = p.countCPUs(dst)
	}
	err := p.best(def, dst)
	if err == nil && len(dst.Tail) == 0 {
		t.cpus = p.cpus
	}
	return err
}

// best uses the first layout that takes the whole payload and passes its checks, else
// the first that takes the whole payload, else the first that fits into it.
func (p *parser) best(def *wire.Message, dst *Fields) error {
	chosen, rank := -1, 0
	var why error
	for i := range def.Layouts {
		if err := p.layout(&def.Layouts[i], dst.Values[:0]); err != nil {
			if i == 0 {
				why = err
			}
			continue
		}
		whole := p.off == len(p.data)
		if whole && !p.unsure && !p.flawed {
			p.deliver(&def.Layouts[i], dst)
			return nil
		}
		r := 1
		if whole && !p.flawed {
			r = 3
		} else if !p.flawed {
			r = 2
		}
		if r > rank {
			chosen, rank = i, r
		}
	}
	if chosen < 0 {
		return why
	}
	l := &def.Layouts[chosen]
	if err := p.layout(l, dst.Values[:0]); err != nil {
		return err
	}
	p.deliver(l, dst)
	return nil
}

func (p *parser) deliver(l *wire.Layout, dst *Fields) {
	dst.Layout, dst.Values, dst.Tail, dst.Flawed = l, p.values, p.data[p.off:], p.flawed
}

// layout parses the fields of a layout.
func (p *parser) layout(l *wire.Layout, values []Value) error {
	p.off, p.values, p.unsure, p.flawed = 0, values, false, false
	for i := range l.Fields {
		if err := p.field(&l.Fields[i]); err != nil {
			return fmt.Errorf("field %s: %w", l.Fields[i].Name, err)
		}
	}
	return nil
}

func (p *parser) field(f *wire.Field) error {
	if f.If != "" && !p.wanted(f) {
		return nil
	}
	if p.search {
		if p.left--; p.left < 0 || p.unsure {
			return errUnlikely
		}
	}
	v := Value{Field: f}
	var err error
	switch f.Type {
	case wire.U8:
		v.Num, err = p.number(1)
	case wire.U32, wire.Hex32, wire.Float, wire.IPv4:
		v.Num, err = p.number(4)
	case wire.I32:
		v.Num, err = p.number(4)
		v.Num = uint64(int64(int32(uint32(v.Num))))
	case wire.U64, wire.I64, wire.Pointer, wire.Double:
		v.Num, err = p.number(8)
	case wire.Time:
		v.Num, err = p.number(8)
		a, b := uint32(v.Num), uint32(v.Num>>32)
		if p.formula {
			a, b = b, a
		}
		v.Num, v.Nanos = uint64(a), b
	case wire.String:
		v.Text, v.Cut, err = p.text()
	case wire.Sized:
		v.Text, err = p.bytes(p.values[len(p.values)-1].Num)
	case wire.Rest:
		v.Text, err = p.bytes(uint64(len(p.data) - p.off))
	case wire.Item:
		at := len(p.values)
		if err = p.item(); err == nil {
			p.values[at].Field = f
		}
		return err
	case wire.Items:
		return p.items(&v)
	case wire.List:
		return p.list(&v)
	}
	if err != nil {
		return err
	}
	p.unsure = p.unsure || !p.likely(f.Check, &v)
	p.values = append(p.values, v)
	return nil
}

// wanted reports whether a field that depends on an earlier one is present.
func (p *parser) wanted(f *wire.Field) bool {
	for i := range p.values {
		if v := &p.values[i]; v.Field != nil && v.Field.Name == f.If {
			return v.Num < 32 && f.Is>>v.Num&1 != 0
		}
	}
	return false
}

func (p *parser) bytes(n uint64) ([]byte, error) {
	if n > uint64(len(p.data)-p.off) {
		return nil, errShort
	}
	b := p.data[p.off : p.off+int(n) : p.off+int(n)]
	p.off += int(n)
	return b, nil
}

func (p *parser) number(size int) (uint64, error) {
	b, err := p.bytes(uint64(size))
	if err != nil {
		return 0, err
	}
	switch size {
	case 1:
		return uint64(b[0]), nil
	case 4:
		return uint64(binary.LittleEndian.Uint32(b)), nil
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text reads a string. A string without its NUL takes the rest of the payload, which
// must have at least one byte.
func (p *parser) text() (text []byte, cut bool, err error) {
	left := p.data[p.off:]
	if n := bytes.IndexByte(left, 0); n >= 0 {
		p.off += n + 1
		return left[:n:n], false, nil
	}
	if len(left) == 0 {
		return nil, false, errShort
	}
	p.off = len(p.data)
	p.flawed = true
	return left, true, nil
}

func (p *parser) items(v *Value) error {
	n, err := p.number(4)
	if err != nil {
		return err
	}
	if n > uint64(len(p.data)-p.off) {
		return errShort
	}
	v.Num = n
	p.values = append(p.values, *v)
	for range n {
		if err := p.item(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) item() error {
	letter, err := p.number(1)
	if err != nil {
		return err
	}
	def := wire.LookupLetter(byte(letter))
	if def == nil {
		return errLetter
	}
	v := Value{Letter: def.Letter}
	switch {
	case def.Array:
		if v.Num, err = p.number(8); err != nil {
			return err
		}
		var n uint64
		if n, err = p.number(4); err == nil {
			v.Text, err = p.bytes(n * uint64(def.Size))
		}
	case def.Letter == 's':
		v.Text, v.Cut, err = p.text()
	case def.Size > 0:
		if v.Num, err = p.number(def.Size); def.Letter == 'd' {
			v.Num = uint64(int64(int32(uint32(v.Num))))
		}
	}
	if err != nil {
		return err
	}
	p.values = append(p.values, v)
	return nil
}

func (p *parser) list(v *Value) (err error) {
	elements := v.Field.Elements
	switch v.Field.Count {
	case wire.PerCPU:
		v.Num = uint64(p.cpus)
	case wire.PerDevice:
		v.Num = uint64(p.devices)
	default:
		v.Num, err = p.number(4)
	}
	if err != nil {
		return err
	}
	least := 0
	for i := range elements {
		least += elements[i].Type.Size()
	}
	if v.Num > uint64((len(p.data)-p.off)/least) {
		return errShort
	}
	p.values = append(p.values, *v)
	for range v.Num {
		for i := range elements {
			if err := p.field(&elements[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
