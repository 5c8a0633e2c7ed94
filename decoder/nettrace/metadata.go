package nettrace

import (
	wire "rtrace-bpf/internal/wire/nettrace"
)

// metadataBlock reads the descriptions of events in a block of version 4.
func (s *Scanner) metadataBlock(c *cursor) {
	compressed := c.eventsHead()
	var h head
	for c.left() > 0 {
		at := c.i
		payload := c.event(&h, compressed, false)
		if c.err == nil {
			c.err = s.described(c.b[payload:payload+int(h.Size)], at, payload)
		}
		if c.err != nil {
			c.i = at // more helpful than the place of a field
		}
	}
}

// described reads a description, whose event begins at from in the block.
func (s *Scanner) described(payload []byte, from, at int) error {
	p := cursor{b: payload}
	m := p.metadata()
	if p.err != nil {
		return p.err
	}
	if err := s.meta.add(m, len(payload)+64); err != nil {
		return err
	}
	if s.dump != nil {
		s.dump.metadata(m, s.base+int64(from), at-from+len(payload))
	}
	s.stats.Metadata++
	return nil
}

// metadata reads a description of version 4, with the tags of version 5.
func (c *cursor) metadata() *wire.Metadata {
	m := &wire.Metadata{ID: c.u32(), Provider: c.text16()}
	m.EventID, m.Name = c.u32(), c.text16()
	m.Keywords, m.Version, m.Level = c.u64(), c.u32(), c.u32()
	if c.err != nil || c.left() == 0 {
		return m
	}
	// If the fields cannot be read, the events have none, as in the reference reader,
	// and what follows the fields cannot be found.
	fields := cursor{b: c.b, i: c.i}
	m.Fields = fields.fields(0)
	if fields.err != nil {
		m.Fields = nil
		return m
	}
	c.i = fields.i
	for c.left() > 0 {
		size := int(int32(c.u32()))
		kind := c.u8()
		tag := c.part(size)
		if c.err != nil {
			return m
		}
		switch kind {
		case wire.TagOpcode:
			m.Opcode = tag.u8()
		case wire.TagParams:
			if m.Fields = tag.params(0); tag.err != nil {
				m.Fields = nil
			}
		}
	}
	return m
}

// fields reads a list of fields of version 4.
func (c *cursor) fields(depth int) (fields []wire.Field) {
	count := c.u32()
	if c.err == nil && uint64(count)*6 > uint64(c.left()) {
		c.short()
	}
	for ; count > 0 && c.err == nil; count-- {
		var f wire.Field
		at := c.i
		f.Type = wire.Type(min(c.u32(), 255))
		switch {
		case f.Type == wire.TypeObject && depth < maxDepth:
			f.Fields = c.fields(depth + 1)
		case f.Type > wire.TypeString, f.Type.String() == "", f.Type == wire.TypeObject:
			c.i = at
			c.fail(malformed("field of type %d", f.Type))
		}
		f.Name = c.text16()
		fields = append(fields, f)
	}
	return fields
}

// params reads a list of fields of version 5, each preceded by its size.
func (c *cursor) params(depth int) (fields []wire.Field) {
	count := c.u32()
	if c.err == nil && uint64(count)*10 > uint64(c.left()) {
		c.short()
	}
	for ; count > 0 && c.err == nil; count-- {
		row := c.part(int(int32(c.u32())) - 4)
		start := c.i - len(row.b)
		f := wire.Field{Name: row.text16()}
		row.param(&f, depth)
		c.within(&row, start)
		fields = append(fields, f)
	}
	return fields
}

// param reads a type of version 5 into f.
func (c *cursor) param(f *wire.Field, depth int) {
	f.Type = wire.Type(min(c.u32(), 255))
	if depth++; depth > maxDepth {
		c.fail(tooMuch("types within %d types", maxDepth))
	}
	if c.err != nil {
		return
	}
	switch {
	case f.Type == wire.TypeObject:
		f.Fields = c.params(depth)
	case f.Type == wire.TypeArray:
		f.Element = new(wire.Field)
		c.param(f.Element, depth)
	case f.Type > wire.TypeArray, f.Type.String() == "":
		c.fail(malformed("field of type %d", f.Type))
	}
}
