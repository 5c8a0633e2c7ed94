package nettrace

import (
	"encoding/binary"
	"fmt"
	"strconv"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

func (s *Scanner) headV6() error {
	b := s.in.bytes(8)
	if len(b) < 8 {
		return s.cut("version")
	}
	s.info.Major, s.info.Minor = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if s.info.Major != wire.MajorV6 {
		return s.fail(12, fmt.Errorf("version %d.%d is %w", s.info.Major, s.info.Minor, trace.ErrUnsupported))
	}
	at := s.in.offset
	kind, size, err := s.blockHead()
	if err != nil {
		return err
	}
	if kind != wire.BlockTrace {
		return s.fail(at, malformed("the first block is of kind %d (%s), not %s", kind, kind, wire.BlockTrace))
	}
	s.stats.blocks[kind]++
	at = s.in.offset
	b = s.in.block(size)
	if len(b) < size {
		return s.cut("Trace block")
	}
	c := cursor{b: b}
	s.traceBlock(&c)
	s.in.release(b)
	if c.err != nil {
		return s.fail(at+int64(c.i), fmt.Errorf("%s block: %w", wire.BlockTrace, c.err))
	}
	return s.check(at)
}

func (s *Scanner) traceBlock(c *cursor) {
	for i := range s.info.Time {
		s.info.Time[i] = c.u16()
	}
	s.info.Sync, s.info.Frequency = c.u64(), c.u64()
	s.info.PointerSize = int(c.u32())
	for count := c.u32(); count > 0 && c.err == nil; count-- {
		p := Label{c.text8(), c.text8()}
		if c.err == nil {
			s.info.Pairs = append(s.info.Pairs, p)
		}
		number, _ := strconv.ParseUint(p.Value, 10, 32) // 0 if it is not a number
		switch p.Key {
		case wire.KeyProcessID:
			s.info.ProcessID = uint32(number)
		case wire.KeyProcessors:
			s.info.Processors = uint32(number)
		case wire.KeySampling:
			s.info.Sampling = uint32(number)
		}
	}
}

func (s *Scanner) blockHead() (kind wire.BlockKind, size int, err error) {
	word := s.in.bytes(4)
	if len(word) < 4 {
		return 0, 0, s.cut("the closing block is missing")
	}
	v := binary.LittleEndian.Uint32(word)
	return wire.BlockKind(v >> 24), int(v & wire.MaxBlock), nil
}

// blockV6 reads the next block.
func (s *Scanner) blockV6() error {
	at := s.in.offset
	s.begin = at
	kind, size, err := s.blockHead()
	if err != nil {
		return err
	}
	switch {
	case kind == wire.BlockEnd:
		s.stats.blocks[kind]++
		if s.in.skip(size) < size {
			return s.cut("closing block")
		}
		return s.junk()
	case kind == wire.BlockTrace:
		return s.fail(at, malformed("a second Trace block"))
	case kind > wire.BlockLabels:
		if err := s.skipped(at, fmt.Sprintf("block of kind %d", kind)); err != nil {
			return err
		}
		if s.in.skip(size) < size {
			return s.cut("block of unknown kind")
		}
		return nil
	}
	s.stats.blocks[kind]++
	at = s.in.offset
	b := s.in.block(size)
	return s.block(kind, b, at, size)
}

// metadataRows reads the descriptions of events in a block of version 6.
func (s *Scanner) metadataRows(c *cursor) {
	c.bytes(int(c.u16()))
	for c.left() > 0 {
		at := c.i
		row := c.part(int(c.u16()))
		start := c.i - len(row.b)
		m := row.metadataV6()
		if c.within(&row, start); c.err != nil {
			return
		}
		if err := s.meta.add(m, len(row.b)+64); err != nil {
			c.i = at
			c.fail(err)
			return
		}
		if s.dump != nil {
			s.dump.metadata(m, s.base+int64(at), c.i-at)
		}
		s.stats.Metadata++
	}
}

func (c *cursor) metadataV6() *wire.Metadata {
	m := &wire.Metadata{ID: c.uvarint32(), Provider: c.text8()}
	m.EventID, m.Name = c.uvarint32(), c.text8()
	m.Fields = c.fieldsV6(0)
	items := c.part(int(c.u16()))
	start := c.i - len(items.b)
	for items.left() > 0 {
		switch kind := items.u8(); kind {
		case wire.MetaOpcode:
			m.Opcode = items.u8()
		case wire.MetaKeywords:
			m.Keywords = items.u64()
		case wire.MetaTemplate, wire.MetaDescription:
			items.text8()
		case wire.MetaAttribute:
			items.text8()
			items.text8()
		case wire.MetaProvider:
			items.bytes(16)
		case wire.MetaLevel:
			m.Level = uint32(items.u8())
		case wire.MetaVersion:
			m.Version = uint32(items.u8())
		default:
			items.i--
			items.fail(malformed("item of kind %d of what describes events", kind))
		}
	}
	c.within(&items, start)
	return m
}

func (c *cursor) fieldsV6(depth int) (fields []wire.Field) {
	for count := c.u16(); count > 0 && c.err == nil; count-- {
		row := c.part(int(c.u16()))
		start := c.i - len(row.b)
		f := wire.Field{Name: row.text8()}
		row.typeV6(&f, depth)
		c.within(&row, start)
		fields = append(fields, f)
	}
	return fields
}

// typeV6 reads a type into f.
func (c *cursor) typeV6(f *wire.Field, depth int) {
	at := c.i
	f.Type = wire.Type(c.u8())
	if depth++; depth > maxDepth {
		c.fail(tooMuch("types within %d types", maxDepth))
	}
	if c.err != nil {
		return
	}
	switch f.Type {
	case wire.TypeObject:
		f.Fields = c.fieldsV6(depth)
	case wire.TypeArray, wire.TypeFixedArray, wire.TypeRelLoc, wire.TypeDataLoc:
		f.Element = new(wire.Field)
		c.typeV6(f.Element, depth)
		if f.Type == wire.TypeFixedArray {
			f.Count = int(c.u16())
		} else if f.Type != wire.TypeArray && c.err == nil && fixedSize(f.Element) == 0 {
			c.i = at
			c.fail(malformed("%s of elements without a fixed size", f.Type))
		}
	default:
		if f.Type.String() == "" {
			c.i = at
			c.fail(malformed("field of type %d", f.Type))
		}
	}
}

// fixedSize returns the size of each value of a field in bytes, or 0 if it varies.
func fixedSize(f *wire.Field) int {
	switch f.Type {
	case wire.TypeRelLoc, wire.TypeDataLoc:
		return 0 // what they point to belongs to them
	case wire.TypeFixedArray:
		return f.Count * fixedSize(f.Element)
	case wire.TypeObject:
		size := 0
		for i := range f.Fields {
			n := fixedSize(&f.Fields[i])
			if n == 0 {
				return 0
			}
			size += n
		}
		return size
	}
	return f.Type.Size()
}
