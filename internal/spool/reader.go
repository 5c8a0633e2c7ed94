package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/trace"
)

// Reader reads the records of a File, once. The contents of a record are valid
// until the next call, except texts.
type Reader struct {
	from   *source
	end    error // error after the last record
	head   [blockHead]byte
	block  []byte // rest of the block
	buf    []byte
	err    error // sticky
	bad    bool  // the block is damaged
	table  table
	last   last
	parser *jsonrecord.Parser
	frames []uint64 // of a stack that is not in the table
	names  []string
	args   []trace.Arg
}

var _ trace.Reader = (*Reader)(nil)

// errDamaged reports that the contents of the file have changed.
var errDamaged = errors.New("spool: the temporary file is damaged")

func newReader(from *source) *Reader {
	return &Reader{from: from, end: io.EOF, parser: jsonrecord.NewParser(false)}
}

// ReadRecord implements trace.Reader.
func (d *Reader) ReadRecord(r *trace.Record) error {
	if d.err != nil {
		return d.err
	}
	if len(d.block) == 0 {
		if d.err = d.next(); d.err != nil {
			return d.err
		}
	}
	tag := d.block[0]
	d.block = d.block[1:]
	switch {
	case tag&callBit != 0:
		d.call(r, tag)
	case tag == tagOther:
		d.other(r)
	default:
		d.bad = true
	}
	if d.bad {
		d.err = errDamaged
	}
	return d.err
}

// next reads the next block.
func (d *Reader) next() error {
	if d.from.left() == 0 {
		return d.ended(d.end)
	}
	if _, err := io.ReadFull(d.from, d.head[:]); err != nil {
		return d.ended(readError(err))
	}
	n := int64(binary.LittleEndian.Uint32(d.head[:]))
	if n == 0 || n > d.from.left() {
		return d.ended(errDamaged)
	}
	if int64(cap(d.buf)) < n {
		d.buf = make([]byte, n+n/8) // blocks have similar sizes
	}
	d.block = d.buf[:n]
	if _, err := io.ReadFull(d.from, d.block); err != nil {
		return readError(err)
	}
	return nil
}

// ended returns err, or ErrYielded if the rest was discarded.
func (d *Reader) ended(err error) error {
	if d.from.yielded {
		return ErrYielded
	}
	return err
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	return fmt.Errorf("read spool: %w", err)
}

// other reads a record that is not a call.
func (d *Reader) other(r *trace.Record) {
	line := d.take(d.number())
	if d.bad {
		return
	}
	d.parser.Reset(line)
	d.parser.Record(r, nil)
	d.bad = d.parser.Err() != nil || r.Kind == trace.KindCall
}

// number reads a number. It returns 0 on failure.
func (d *Reader) number() uint64 {
	b := d.block
	if len(b) > 0 && b[0] < 0x80 {
		d.block = b[1:]
		return uint64(b[0])
	}
	v, n := binio.Uleb128(b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.block = b[n:]
	return v
}

func (d *Reader) difference(from uint64) uint64 { return from + unzigzag(d.number()) }

// take returns the next n bytes, or nil on failure.
func (d *Reader) take(n uint64) []byte {
	if n > uint64(len(d.block)) {
		d.bad = true
		return nil
	}
	b := d.block[:n]
	d.block = d.block[n:]
	return b
}

// count reads a number of items that take at least a byte each.
func (d *Reader) count() int {
	n := d.number()
	if n > uint64(len(d.block)) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *Reader) bytes() string { return string(d.take(d.number())) }

func (d *Reader) call(r *trace.Record, tag byte) {
	c, l := &r.Call, &d.last
	r.Kind = trace.KindCall
	l.time = int64(d.difference(uint64(l.time)))
	l.id = d.difference(l.id)
	c.Op = trace.Op(tag & opMask)
	c.Function = d.text()
	d.stack(&c.Stack)
	if tag&hasTID != 0 {
		l.tid = int32(d.difference(uint64(l.tid)))
	}
	if tag&hasCPU != 0 {
		l.cpu = int32(d.difference(uint64(l.cpu)))
	}
	c.Size = 0
	if tag&hasSize != 0 {
		c.Size = d.number()
	}
	c.OldID, c.EntryTime = 0, 0
	if tag&hasOld != 0 {
		c.OldID = d.difference(l.id)
		c.EntryTime = int64(d.difference(uint64(l.time)))
	}
	c.Index, c.Caller, c.Thread, c.Args = 0, trace.Caller{}, 0, nil
	l.seq++
	if tag&hasRare != 0 {
		d.rarities(c)
	}
	r.Time, r.PID, r.TID, r.CPU = l.time, l.pid, l.tid, l.cpu
	c.Seq, c.ID, c.Resource, c.Context = l.seq, l.id, l.resource, l.context
}

func (d *Reader) rarities(c *trace.Call) {
	l := &d.last
	rare := d.number()
	if rare >= rareEnd {
		d.bad = true
	}
	if rare&rareOp != 0 {
		c.Op = trace.Op(d.number())
	}
	if rare&rareSeq != 0 {
		l.seq = d.difference(l.seq)
	}
	if rare&rarePID != 0 {
		l.pid = int32(d.difference(uint64(l.pid)))
	}
	if rare&rareContext != 0 {
		l.context = uint32(d.number())
	}
	if rare&rareResource != 0 {
		l.resource = uint32(d.number())
	}
	if rare&rareIndex != 0 {
		l.index = d.difference(l.index)
		c.Index = l.index
	}
	if rare&rareCaller != 0 {
		c.Caller.Function = d.text()
		c.Caller.File = d.text()
		c.Caller.Line = d.number()
	}
	if rare&rareThread != 0 {
		c.Thread = d.number()
	}
	if rare&rareArgs != 0 {
		d.args = d.args[:0]
		for range d.count() {
			d.args = append(d.args, trace.Arg{Name: d.text(), Value: d.bytes()})
		}
		c.Args = d.args
	}
}

// text reads a reference to a text, and the text if it is new.
func (d *Reader) text() string {
	ref := d.number()
	switch n := uint64(len(d.table.texts)); {
	case ref == 0 || d.bad:
		return ""
	case ref <= n:
		return d.table.texts[ref-1]
	case ref == n+refNew:
		s := d.bytes()
		d.table.texts = append(d.table.texts, s)
		return s
	case ref == n+refInline:
		return d.bytes()
	}
	d.bad = true
	return ""
}

func (d *Reader) stack(s *trace.Stack) {
	ref := d.number()
	switch n := uint64(len(d.table.stacks)); {
	case ref == 0 || d.bad:
		*s = trace.Stack{}
	case ref <= n:
		*s = d.table.stacks[ref-1]
	case ref == n+refNew:
		d.newStack(s)
		d.table.hold(s)
		*s = d.table.stacks[n]
	case ref == n+refInline:
		d.newStack(s)
	default:
		d.bad = true
	}
}

// newStack reads a stack that was written out.
func (d *Reader) newStack(s *trace.Stack) {
	end := d.number()
	*s = trace.Stack{End: trace.StackEnd(end >> 1), FramePointer: end&1 != 0, Reason: d.text()}
	d.frames = d.frames[:0]
	var from uint64
	for range d.count() {
		from = d.difference(from)
		d.frames = append(d.frames, from)
	}
	if len(d.frames) > 0 {
		s.Frames = d.frames
	}
	d.names = d.names[:0]
	for range d.count() {
		d.names = append(d.names, d.bytes())
	}
	if len(d.names) > 0 {
		s.Names = d.names
	}
	if len(d.names) != 0 && len(d.names) != len(d.frames) {
		d.bad = true
	}
}
