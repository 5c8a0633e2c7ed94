package nettrace

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

const (
	// mostStacks and mostFrames bound the stacks between two sequence points.
	mostStacks = 1 << 16
	mostFrames = 1 << 20
	// maxFrames is the largest number of frames that the reference reader accepts in a
	// stack. The frames of a longer stack are in an event.
	maxFrames = wire.MaxStackSize / 8
	// part is the largest number of bytes of a text in an event about a stack. More
	// events follow for a longer text.
	part = 16 << 10
)

// stacks holds the stacks that were written since the last sequence point.
type stacks struct {
	data   []byte   // stacks that are not in a block yet
	count  int      // number of those
	table  []uint32 // indices in known, plus one, by hash
	known  []known
	frames []uint64 // of all known
	seed   uint64
}

// known is a stack that has an id: its index plus one.
type known struct {
	hash   uint64
	at, n  uint32 // in stacks.frames
	pid    int32  // process whose frames were noted last
	end    trace.StackEnd
	fp     bool
	reason string
	names  []string
}

func (s *stacks) init() {
	s.table = make([]uint32, 1024)
	s.seed = rand.Uint64() | 1
}

// full reports whether it is time for a sequence point.
func (s *stacks) full() bool { return len(s.known) >= mostStacks || len(s.frames) >= mostFrames }

// head returns the header of a block with the stacks that are not in one.
func (s *stacks) head() []byte {
	h := binary.LittleEndian.AppendUint32(nil, uint32(len(s.known)-s.count+1))
	return binary.LittleEndian.AppendUint32(h, uint32(s.count))
}

// flushed records that all stacks are in blocks.
func (s *stacks) flushed() { s.data, s.count = s.data[:0], 0 }

// forget starts again at id 1.
func (s *stacks) forget() {
	clear(s.table)
	clear(s.known)
	s.known, s.frames = s.known[:0], s.frames[:0]
}

// hash hashes a stack without its texts. It is seeded because traces may be made to
// collide.
func (s *stacks) hash(st *trace.Stack) uint64 {
	h := s.seed ^ uint64(len(st.Frames))<<16 ^ uint64(st.End)
	for _, f := range st.Frames {
		h = (h ^ f) * 0x9e3779b97f4a7c15
		h ^= h >> 29
		h += s.seed
	}
	for _, n := range st.Names {
		for i := range len(n) {
			h = (h ^ uint64(n[i])) * 0x100000001b3
		}
		h++
	}
	if st.FramePointer {
		h = ^h
	}
	return h ^ h>>32
}

// is reports whether k is the stack st.
func (s *stacks) is(k *known, st *trace.Stack) bool {
	return k.end == st.End && k.fp == st.FramePointer && k.reason == st.Reason &&
		slices.Equal(s.frames[k.at:k.at+k.n], st.Frames) && slices.Equal(k.names, st.Names)
}

// find returns the slot of a known stack, or else its place in the table.
func (s *stacks) find(st *trace.Stack, hash uint64) (k *known, id uint32, slot int) {
	mask := len(s.table) - 1
	for slot = int(hash) & mask; ; slot = (slot + 1) & mask {
		id = s.table[slot]
		if id == 0 {
			return nil, 0, slot
		}
		if k = &s.known[id-1]; k.hash == hash && s.is(k, st) {
			return k, id, slot
		}
	}
}

// add makes a stack known.
func (s *stacks) add(st *trace.Stack, hash uint64, slot int) (k *known, id uint32) {
	s.known = append(s.known, known{
		hash: hash, at: uint32(len(s.frames)), n: uint32(len(st.Frames)),
		end: st.End, fp: st.FramePointer, reason: strings.Clone(st.Reason),
	})
	id = uint32(len(s.known))
	k = &s.known[id-1]
	for _, n := range st.Names {
		k.names = append(k.names, strings.Clone(n))
	}
	s.frames = append(s.frames, st.Frames...)
	s.table[slot] = id
	if len(s.known)*2 > len(s.table) {
		s.table = make([]uint32, 2*len(s.table))
		mask := len(s.table) - 1
		for i := range s.known {
			at := int(s.known[i].hash) & mask
			for s.table[at] != 0 {
				at = (at + 1) & mask
			}
			s.table[at] = uint32(i + 1)
		}
	}
	return k, id
}

// none returns the id of the stack without frames.
func (s *stacks) none(e *Writer) uint32 {
	return e.stack(e.process.pid, &trace.Stack{})
}

// stack returns the id of a stack of a process. It writes the stack if it is new.
func (e *Writer) stack(pid int32, st *trace.Stack) uint32 {
	s := &e.stacks
	hash := s.hash(st)
	k, id, slot := s.find(st, hash)
	if k != nil {
		if k.pid != pid && k.n > 0 {
			k.pid = pid
			e.system.note(e, pid, st)
		}
		return id
	}
	k, id = s.add(st, hash, slot)
	k.pid = pid
	inside := len(st.Frames) <= maxFrames
	for _, f := range st.Frames {
		inside = inside && e.process.hasAddress(f)
	}
	frames := st.Frames[:min(len(st.Frames), maxFrames)]
	s.data = binary.LittleEndian.AppendUint32(s.data, uint32(len(frames)*e.process.pointer))
	for _, f := range frames {
		s.data = e.process.appendAddress(s.data, f)
	}
	s.count++
	e.stats.Stacks++
	usual := trace.StackAbsent
	if len(st.Frames) > 0 {
		usual = trace.StackComplete
		e.system.note(e, pid, st)
	}
	if !inside || st.End != usual || st.FramePointer || st.Reason != "" || len(st.Names) > 0 {
		e.describe(id, st, inside)
	}
	return id
}

// stackFields are the fields of wire.OwnStackName.
var stackFields = []wire.Field{
	{Name: wire.OwnEnd, Type: wire.TypeByte},
	{Name: wire.OwnFramePointer, Type: wire.TypeBoolean32},
	{Name: wire.OwnReason, Type: wire.TypeString},
	{Name: wire.OwnNames, Type: wire.TypeString},
	{Name: wire.OwnFrames, Type: wire.TypeString},
}

// describe writes what the block of stacks has no place for. inside reports whether the
// block holds all frames.
func (e *Writer) describe(id uint32, st *trace.Stack, inside bool) {
	if e.defined.stack == 0 {
		e.defined.stack = e.defined.own(wire.OwnStackID, wire.OwnStackName, 0, stackFields)
	}
	var names, frames []byte
	for i, n := range st.Names {
		if i > 0 && len(names)+len(n) > part {
			e.stackPart(id, st, names, nil)
			names = names[:0]
		}
		names = append(appendEscaped(names, n), '\n')
	}
	if !inside {
		for _, f := range st.Frames {
			if len(frames) > part {
				e.stackPart(id, st, nil, frames)
				frames = frames[:0]
			}
			frames = append(strconv.AppendUint(frames, f, 16), ' ')
		}
	}
	e.stackPart(id, st, names, frames)
}

func (e *Writer) stackPart(id uint32, st *trace.Stack, names, frames []byte) {
	p := &e.payload
	p.data = append(p.data[:0], byte(st.End))
	p.flag(st.FramePointer)
	p.text(st.Reason)
	p.text(string(names))
	p.text(string(frames))
	e.place(e.process.pid, 0, 0, id)
	e.write(e.defined.stack, 0)
}
