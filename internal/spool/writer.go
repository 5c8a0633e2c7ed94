package spool

import (
	"encoding/binary"
	"fmt"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/trace"
)

// encoder encodes records to blocks.
type encoder struct {
	buf   []byte // the block, with room for its length at the start
	line  []byte
	index *index
	last  last
}

// last holds the fields of the previous call, which differences refer to.
type last struct {
	time              int64
	pid, tid, cpu     int32
	seq, id           uint64
	resource, context uint32
	index             uint64
}

const blockHead = 4

func newEncoder(tableBytes int) *encoder {
	return &encoder{buf: make([]byte, blockHead, blockBytes+4096), index: newIndex(tableBytes)}
}

// empty reports whether the block has no records.
func (e *encoder) empty() bool { return len(e.buf) == blockHead }

// full reports whether the block should be written.
func (e *encoder) full() bool { return len(e.buf) >= blockBytes }

// take returns the block and begins the next one in the same memory.
func (e *encoder) take() []byte {
	b := e.buf
	binary.LittleEndian.PutUint32(b, uint32(len(b)-blockHead))
	e.buf = b[:blockHead]
	return b
}

// record adds r to the block. If r is not valid for package jsonrecord, it returns
// an error and adds nothing.
func (e *encoder) record(r *trace.Record) error {
	if r.Kind == trace.KindCall {
		s := &r.Call.Stack
		if len(s.Names) != 0 && len(s.Names) != len(s.Frames) {
			return fmt.Errorf("spool: call %d has %d frames but %d frame names", r.Call.Seq, len(s.Frames), len(s.Names))
		}
		e.call(r)
		return nil
	}
	line, err := jsonrecord.Append(e.line[:0], r)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	e.line = line
	e.buf = append(e.buf, tagOther)
	e.number(uint64(len(line)))
	e.buf = append(e.buf, line...)
	return nil
}

func (e *encoder) number(v uint64) {
	if v < 0x80 {
		e.buf = append(e.buf, byte(v))
		return
	}
	e.buf = binio.AppendUleb128(e.buf, v)
}

func (e *encoder) difference(v, from uint64) { e.number(zigzag(v - from)) }

func (e *encoder) call(r *trace.Record) {
	c, l := &r.Call, &e.last
	tag, rare := byte(callBit), e.rare(r)
	if c.Op <= opMask {
		tag |= byte(c.Op)
	}
	if rare != 0 {
		tag |= hasRare
	}
	if r.TID != l.tid {
		tag |= hasTID
	}
	if r.CPU != l.cpu {
		tag |= hasCPU
	}
	if c.Size != 0 {
		tag |= hasSize
	}
	if c.OldID != 0 || c.EntryTime != 0 {
		tag |= hasOld
	}
	e.buf = append(e.buf, tag)
	e.difference(uint64(r.Time), uint64(l.time))
	e.difference(c.ID, l.id)
	e.text(c.Function)
	e.stack(&c.Stack)
	if tag&hasTID != 0 {
		e.difference(uint64(r.TID), uint64(l.tid))
	}
	if tag&hasCPU != 0 {
		e.difference(uint64(r.CPU), uint64(l.cpu))
	}
	if tag&hasSize != 0 {
		e.number(c.Size)
	}
	if tag&hasOld != 0 {
		e.difference(c.OldID, c.ID)
		e.difference(uint64(c.EntryTime), uint64(r.Time))
	}
	l.seq++
	if rare != 0 {
		e.rarities(r, rare)
	}
	l.time, l.tid, l.cpu, l.id = r.Time, r.TID, r.CPU, c.ID
}

// rare returns the mask of the rare fields of r.
func (e *encoder) rare(r *trace.Record) uint64 {
	c, l := &r.Call, &e.last
	var rare uint64
	if c.Op > opMask {
		rare |= rareOp
	}
	if c.Seq != l.seq+1 {
		rare |= rareSeq
	}
	if r.PID != l.pid {
		rare |= rarePID
	}
	if c.Context != l.context {
		rare |= rareContext
	}
	if c.Resource != l.resource {
		rare |= rareResource
	}
	if c.Index != 0 {
		rare |= rareIndex
	}
	if c.Caller != (trace.Caller{}) {
		rare |= rareCaller
	}
	if c.Thread != 0 {
		rare |= rareThread
	}
	if len(c.Args) > 0 {
		rare |= rareArgs
	}
	return rare
}

func (e *encoder) rarities(r *trace.Record, rare uint64) {
	c, l := &r.Call, &e.last
	e.number(rare)
	if rare&rareOp != 0 {
		e.number(uint64(c.Op))
	}
	if rare&rareSeq != 0 {
		e.difference(c.Seq, l.seq)
	}
	if rare&rarePID != 0 {
		e.difference(uint64(r.PID), uint64(l.pid))
	}
	if rare&rareContext != 0 {
		e.number(uint64(c.Context))
	}
	if rare&rareResource != 0 {
		e.number(uint64(c.Resource))
	}
	if rare&rareIndex != 0 {
		e.difference(c.Index, l.index)
		l.index = c.Index
	}
	if rare&rareCaller != 0 {
		e.text(c.Caller.Function)
		e.text(c.Caller.File)
		e.number(c.Caller.Line)
	}
	if rare&rareThread != 0 {
		e.number(c.Thread)
	}
	if rare&rareArgs != 0 {
		e.number(uint64(len(c.Args)))
		for i := range c.Args {
			e.text(c.Args[i].Name)
			e.bytes(c.Args[i].Value)
		}
	}
	l.seq, l.pid, l.context, l.resource = c.Seq, r.PID, c.Context, c.Resource
}

func (e *encoder) bytes(s string) {
	e.number(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *encoder) text(s string) {
	if s == "" {
		e.buf = append(e.buf, 0)
		return
	}
	ref, out := e.index.text(s)
	e.number(uint64(ref))
	if out {
		e.bytes(s)
	}
}

func (e *encoder) stack(s *trace.Stack) {
	if len(s.Frames) == 0 && s.End == trace.StackAbsent && !s.FramePointer && s.Reason == "" {
		e.buf = append(e.buf, 0)
		return
	}
	ref, out := e.index.stack(s)
	e.number(uint64(ref))
	if !out {
		return
	}
	end := uint64(s.End) << 1
	if s.FramePointer {
		end |= 1
	}
	e.number(end)
	e.text(s.Reason)
	e.number(uint64(len(s.Frames)))
	var from uint64
	for _, f := range s.Frames {
		e.difference(f, from)
		from = f
	}
	e.number(uint64(len(s.Names)))
	for _, name := range s.Names {
		e.bytes(name)
	}
}
