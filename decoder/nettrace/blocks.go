package nettrace

import (
	wire "rtrace-bpf/internal/wire/nettrace"
)

// stackBlock reads a block of stacks.
func (s *Scanner) stackBlock(c *cursor) {
	id, count := c.u32(), c.u32()
	for ; count > 0 && c.err == nil; count-- {
		at := c.i
		b := c.bytes(int(int32(c.u32())))
		if c.err != nil {
			c.i = at
			return
		}
		if err := s.stacks.add(id, b); err != nil {
			c.i = at
			c.fail(err)
			return
		}
		if s.dump != nil {
			frames, _ := s.stacks.find(id)
			s.dump.stack(id, frames, s.base+int64(at), c.i-at)
		}
		s.stats.Stacks++
		s.stats.Frames += uint64(len(b) / s.stacks.size)
		id++
	}
}

// sequencePoint reads a sequence point: all events before it are older, and all after
// it newer. It forgets stacks and labels.
func (s *Scanner) sequencePoint(c *cursor) {
	time, flags := c.u64(), uint32(0)
	if s.v6 {
		flags = c.u32()
	}
	for count := c.u32(); count > 0 && c.err == nil; count-- {
		at := c.i
		var (
			id  uint64
			seq uint32
		)
		if s.v6 {
			id, seq = c.uvarint(), c.uvarint32()
		} else {
			id, seq = c.u64(), c.u32()
		}
		if c.err == nil {
			s.dump.last(wordSequence, id, seq, time, s.base+int64(at), c.i-at)
			s.checkpoint(c, at, id, seq, time)
		}
	}
	if c.err != nil {
		return
	}
	s.later(func() {
		s.points++
		s.flush(flags)
	})
}

// checkpoint compares the number of a thread's last event in a sequence point or
// removal, at the given place, with that of the last event read.
func (s *Scanner) checkpoint(c *cursor, at int, id uint64, seq uint32, time uint64) *Thread {
	t, err := s.threads.find(id, s.v6)
	if err != nil {
		c.i = at
		c.fail(err)
		return nil
	}
	if n := t.reach(seq, seq, s.v6); n > 0 {
		s.missing(t, n, time)
	}
	return t
}

// threadRows reads the threads in a block of version 6.
func (s *Scanner) threadRows(c *cursor) {
	for c.left() > 0 {
		at := c.i
		row := c.part(int(c.u16()))
		start := c.i - len(row.b)
		t := &Thread{Process: s.threads.process, counted: true}
		t.Index = row.uvarint()
		for row.left() > 0 {
			switch kind := row.u8(); kind {
			case wire.ThreadName:
				t.Name = row.text8()
			case wire.ThreadProcess:
				t.Process, t.Known = row.uvarint(), true
			case wire.ThreadID:
				t.ID, t.Known = row.uvarint(), true
			case wire.ThreadAttribute:
				row.text8()
				row.text8()
			default:
				row.i--
				row.fail(malformed("item of kind %d of a thread", kind))
			}
		}
		if c.within(&row, start); c.err != nil {
			return
		}
		switch {
		case s.threads.byID[t.Index] != nil:
			c.i = at
			c.fail(malformed("thread index %d stands for two threads", t.Index))
		case len(s.threads.byID) >= maxThreads:
			c.fail(tooMuch("%d threads", len(s.threads.byID)))
		default:
			s.threads.put(t.Index, t)
			s.dump.thread(wordThread, t, s.base+int64(at), c.i-at)
		}
	}
}

// removeThreads reads a block of version 6 with the threads that have ended.
func (s *Scanner) removeThreads(c *cursor) {
	for c.left() > 0 {
		at := c.i
		index, seq := c.uvarint(), c.uvarint32()
		if c.err != nil {
			return
		}
		s.dump.last(wordRemove, index, seq, s.queue.last, s.base+int64(at), c.i-at)
		if t := s.checkpoint(c, at, index, seq, s.queue.last); t != nil {
			s.threads.remove(index)
		}
	}
}

// labelBlock reads lists of labels of version 6.
func (s *Scanner) labelBlock(c *cursor) {
	index, count := c.u32(), c.u32()
	for ; count > 0 && c.err == nil; count-- {
		at := c.i
		l := c.labels()
		if c.err == nil {
			if err := s.labels.add(index, l, c.i-at+64); err != nil {
				c.fail(err)
			}
			s.dump.labels(index, l, s.base+int64(at), c.i-at)
		}
		index++
	}
}

func (c *cursor) labels() *Labels {
	l := new(Labels)
	for c.err == nil {
		at := c.i
		kind := c.u8()
		switch kind &^ wire.LabelLast {
		case wire.LabelActivity:
			l.Activity = c.ownID()
		case wire.LabelRelated:
			l.Related = c.ownID()
		case wire.LabelTraceID:
			l.TraceID = c.ownID()
		case wire.LabelSpanID:
			l.SpanID = c.u64()
		case wire.LabelString:
			l.Others = append(l.Others, Label{c.text8(), c.text8()})
		case wire.LabelNumber:
			l.Others = append(l.Others, Label{c.text8(), string(appendInt(nil, c.varint()))})
		case wire.LabelOpcode:
			l.Opcode = c.ownU8()
		case wire.LabelKeywords:
			keywords := c.u64()
			l.Keywords = &keywords
		case wire.LabelLevel:
			l.Level = c.ownU8()
		case wire.LabelVersion:
			l.Version = c.ownU8()
		default:
			c.i = at
			c.fail(malformed("label of kind %d", kind&^wire.LabelLast))
		}
		if kind&wire.LabelLast != 0 {
			break
		}
	}
	return l
}
