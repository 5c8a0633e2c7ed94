package nettrace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// kindsV4 holds the kinds of blocks of the objects of version 4.
var kindsV4 = map[string]wire.BlockKind{
	wire.ObjectEvent: wire.BlockEvent, wire.ObjectMetadata: wire.BlockMetadata,
	wire.ObjectStack: wire.BlockStack, wire.ObjectSequence: wire.BlockSequence,
}

func (s *Scanner) headV4() error {
	s.info.Major = 4
	name := s.in.bytes(len(wire.Serializer))
	if string(name) != wire.Serializer[:len(name)] {
		return s.fail(12, malformed("the name of the serializer is %q, not %s", name, wire.Serializer))
	}
	if len(name) < len(wire.Serializer) {
		return s.cut("name of the serializer")
	}
	at := s.in.offset
	object, version, _, err := s.objectHead()
	if errors.Is(err, io.EOF) {
		return s.fail(at, malformed("the object %s is missing", wire.ObjectTrace))
	}
	if err != nil {
		return err
	}
	switch {
	case object != wire.ObjectTrace:
		return s.fail(at, malformed("the first object is %q, not %s", object, wire.ObjectTrace))
	case version != wire.VersionTrace:
		return s.fail(at, fmt.Errorf("object %s of version %d is %w", object, version, trace.ErrUnsupported))
	}
	s.stats.blocks[wire.BlockTrace]++
	at = s.in.offset
	b := s.in.bytes(wire.TraceSize)
	if len(b) < wire.TraceSize {
		return s.cut("object " + object)
	}
	c := cursor{b: b}
	for i := range s.info.Time {
		s.info.Time[i] = c.u16()
	}
	s.info.Sync, s.info.Frequency = c.u64(), c.u64()
	s.info.PointerSize, s.info.ProcessID = int(c.u32()), c.u32()
	s.info.Processors, s.info.Sampling = c.u32(), c.u32()
	if err := s.check(at); err != nil {
		return err
	}
	return s.endObject(object)
}

// object reads the next object.
func (s *Scanner) object() error {
	at := s.in.offset
	s.begin = at
	name, version, lowest, err := s.objectHead()
	if errors.Is(err, io.EOF) {
		return s.junk()
	}
	if err != nil {
		return err
	}
	word := s.in.bytes(4)
	if len(word) < 4 {
		return s.cut("size of object " + name)
	}
	size := int64(int32(binary.LittleEndian.Uint32(word)))
	if size < 0 || size > wire.MaxBlock {
		return s.fail(s.in.offset-4, tooMuch("object %s of %d bytes, more than %d", name, size, wire.MaxBlock))
	}
	if pad := int(-s.in.offset & (wire.Align - 1)); len(s.in.bytes(pad)) < pad {
		return s.cut("object " + name)
	}
	kind, known := kindsV4[name]
	switch {
	case !known:
		if name == wire.ObjectTrace {
			return s.fail(at, malformed("a second object %s", name))
		}
		if err := s.skipped(at, "object "+name); err != nil {
			return err
		}
		if s.in.skip(int(size)) < int(size) {
			return s.cut("object " + name)
		}
		return s.endObject(name)
	case lowest > wire.VersionBlock:
		return s.fail(at, fmt.Errorf("object %s of version %d, which readers of version %d are needed for, is %w",
			name, version, lowest, trace.ErrUnsupported))
	}
	s.stats.blocks[kind]++
	start := s.in.offset
	b := s.in.block(int(size))
	if err := s.block(kind, b, start, int(size)); err != nil {
		return err
	}
	return s.endObject(name)
}

// unknownKind counts objects and blocks of unknown kinds.
const unknownKind = "unknown"

// objectName returns the name of an object, which most often is a known one.
func objectName(b []byte) string {
	switch string(b) {
	case wire.ObjectEvent:
		return wire.ObjectEvent
	case wire.ObjectMetadata:
		return wire.ObjectMetadata
	case wire.ObjectStack:
		return wire.ObjectStack
	case wire.ObjectSequence:
		return wire.ObjectSequence
	}
	return string(b)
}

// objects counts objects and blocks by their names.
func (k *counters) objects(v6 bool) map[string]uint64 {
	objects := make(map[string]uint64)
	name := wire.BlockKind.String
	if !v6 {
		name = func(k wire.BlockKind) string {
			for name, kind := range kindsV4 {
				if kind == k {
					return name
				}
			}
			return wire.ObjectTrace
		}
	}
	for kind, n := range k.blocks {
		if n > 0 {
			objects[name(wire.BlockKind(kind))] = n
		}
	}
	if k.Unknown > 0 {
		objects[unknownKind] = k.Unknown
	}
	return objects
}

// objectHead reads everything before the payload of an object. It returns io.EOF if the
// stream ends here regularly.
func (s *Scanner) objectHead() (name string, version, lowest uint32, err error) {
	at := s.in.offset
	tag := s.in.bytes(1)
	switch {
	case len(tag) == 0:
		return "", 0, 0, s.cut("the closing tag is missing")
	case tag[0] == wire.TagNull:
		return "", 0, 0, io.EOF
	case tag[0] == wire.TagBeginObject:
		return "", 0, 0, s.fail(at, fmt.Errorf("object of version 3 is %w", trace.ErrUnsupported))
	case tag[0] != wire.TagBeginPrivate:
		return "", 0, 0, s.fail(at, malformed("tag %d in place of an object", tag[0]))
	}
	b := s.in.bytes(14)
	if n := min(len(b), 2); string(b[:n]) != string([]byte{wire.TagBeginPrivate, wire.TagNull}[:n]) {
		return "", 0, 0, s.fail(at, malformed("tags % x in place of those that begin an object", b[:n]))
	}
	if len(b) < 14 {
		return "", 0, 0, s.cut("object")
	}
	c := cursor{b: b[2:]}
	version, lowest = c.u32(), c.u32()
	size := c.u32()
	if size == 0 || size > wire.MaxName {
		return "", 0, 0, s.fail(s.in.offset-4, malformed("object with a name of %d bytes", size))
	}
	b = s.in.bytes(int(size) + 1)
	if len(b) < int(size)+1 {
		return "", 0, 0, s.cut("name of an object")
	}
	name = objectName(b[:size])
	if b[size] != wire.TagEndObject {
		return "", 0, 0, s.fail(s.in.offset-1, malformed("tag %d after the name of object %q", b[size], name))
	}
	return name, version, lowest, nil
}

func (s *Scanner) endObject(name string) error {
	tag := s.in.bytes(1)
	if len(tag) == 0 {
		return s.cut("object " + name)
	}
	if tag[0] != wire.TagEndObject {
		return s.fail(s.in.offset-1, malformed("tag %d after object %s", tag[0], name))
	}
	return nil
}

// junk reads the bytes after the end. Writers of tests leave zeros there.
func (s *Scanner) junk() error {
	start := s.in.offset
	if s.dump != nil {
		s.dump.finished(s.begin)
		if !s.opts.Strict {
			return io.EOF // the dump contains what follows
		}
	}
	for s.in.skip(64<<10) > 0 {
		if s.opts.Strict {
			return s.fail(start, malformed("bytes after the end"))
		}
	}
	s.stats.Junk = s.in.offset - start
	if s.in.err != nil && !errors.Is(s.in.err, io.EOF) {
		return s.in.err
	}
	return io.EOF
}
