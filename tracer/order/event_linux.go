package order

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"

	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// The kinds of events. The first ones are those of enum record_kind in bpf/records.h.
const (
	KindAlloc      = uint8(object.ProbeRecordKindRECORD_ALLOC)
	KindFree       = uint8(object.ProbeRecordKindRECORD_FREE)
	KindMoveEnter  = uint8(object.ProbeRecordKindRECORD_MOVE_ENTER)
	KindMove       = uint8(object.ProbeRecordKindRECORD_MOVE)
	KindMoveUndone = uint8(object.ProbeRecordKindRECORD_MOVE_UNDONE)
	kindStack      = uint8(object.ProbeRecordKindRECORD_STACK)
	kindMaps       = uint8(object.ProbeRecordKindRECORD_MAPS)
	KindRaw        = uint8(object.ProbeRecordKindRECORD_RAW) // Addr numbers the raw stack from the start of the trace
	KindGrowth     = uint8(object.ProbeRecordKindRECORD_GROWTH)
	KindCallStack  = uint8(object.ProbeRecordKindRECORD_CALL_STACK)
	KindDiffers    = uint8(object.ProbeRecordKindRECORD_SITE_DIFFERS) // Addr and Size are those of the call, Old and Entry those that the site at Stack reported, Argument times
	KindFault      = uint8(object.ProbeRecordKindRECORD_FAULT)
	KindArea       = uint8(object.ProbeRecordKindRECORD_AREA) // Old is where moved memory was, Entry its bytes
	KindSide       = uint8(0x80)                              // Addr numbers the side from the start of the trace
	KindActivity   = uint8(0x83)                              // Addr numbers one of the batch's activities
	KindFunction   = uint8(0x84)                              // Addr numbers one of the batch's calls
)

// Event is one entry in the order of events, mostly a record of the BPF programs. It
// contains no pointers, so that queues of events cost the garbage collector nothing.
type Event struct {
	Time         uint64 // ns of CLOCK_MONOTONIC
	Addr         uint64
	Size         uint64
	Stack        uint64 // hash of the stack, 0 for none
	Old          uint64 // KindMove: the old block; also set in the second half of a move that was split
	Entry        uint64 // KindMove: time of its entry
	TID          uint32
	PID          uint32
	Function     uint16
	CPU          uint16
	Argument     uint32
	Kind         uint8
	ArgumentKind uint8 // an object.ProbeArgumentKind: which argument Argument is
}

// StackDef contains the frames of the stack with a hash.
type StackDef struct {
	Hash         uint64
	Frames       []uint64
	End          object.ProbeStackEnd
	FramePointer bool
	Late         bool   // unwound from a stack copy; only one event has the hash
	ID           uint64 // identifies the stack in the trace; 0 until record.Stream checked the frames
	Used         uint64 // time of the last call with this stack
}

const (
	eventSize     = int(unsafe.Sizeof(object.ProbeEvent{}))
	moveEventSize = int(unsafe.Sizeof(object.ProbeMoveEvent{}))
	stackHeadSize = int(unsafe.Offsetof(object.ProbeStackRecord{}.Frames))
	rawHeadSize   = int(unsafe.Offsetof(object.ProbeRawStack{}.Data))
)

// isStack reports whether a record of the BPF programs is a stack.
func isStack(b []byte) bool {
	return len(b) >= stackHeadSize && b[unsafe.Offsetof(object.ProbeEvent{}.Head.Kind)] == kindStack
}

// decode reads an event of the BPF programs into e; b must be aligned to 8 bytes. It
// returns false for a record that the programs never send.
func decode(b []byte, e *Event) bool {
	if len(b) < eventSize {
		return false
	}
	raw := (*object.ProbeEvent)(unsafe.Pointer(unsafe.SliceData(b)))
	e.Kind = raw.Head.Kind
	e.Time = raw.Head.Time
	e.TID = raw.Head.Tid
	e.Function = raw.Head.Function
	e.Addr = raw.Addr
	e.Size = raw.Size
	e.Stack = raw.Stack
	e.PID = raw.Pid
	e.Argument, e.ArgumentKind = raw.Argument, raw.Head.ArgumentKind
	e.Old, e.Entry = 0, 0
	if e.Kind == KindMove || e.Kind == KindArea || e.Kind == KindDiffers {
		if len(b) < moveEventSize {
			return false
		}
		move := (*object.ProbeMoveEvent)(unsafe.Pointer(unsafe.SliceData(b)))
		e.Old, e.Entry = move.Old, move.EntryTime
	}
	return e.Kind >= KindAlloc && e.Kind <= KindDiffers && e.Kind != kindStack && e.Kind != KindRaw || e.Kind == KindFault || e.Kind == KindArea
}

// decodeStack reads a stack; see isStack. It copies the frames, and the caller owns the
// copy.
func decodeStack(b []byte, s *StackDef) bool {
	// The ring contains only the frames that exist, so b must not be read through the
	// whole struct.
	var at object.ProbeStackRecord
	depth := int(binary.NativeEndian.Uint16(b[unsafe.Offsetof(at.Depth):]))
	if depth > (len(b)-stackHeadSize)/8 {
		return false
	}
	s.Hash = binary.NativeEndian.Uint64(b[unsafe.Offsetof(at.Hash):])
	s.End = object.ProbeStackEnd(b[unsafe.Offsetof(at.End)])
	s.FramePointer = b[unsafe.Offsetof(at.FramePointer)] != 0
	s.Frames = make([]uint64, depth)
	for i := range s.Frames {
		s.Frames[i] = binary.NativeEndian.Uint64(b[stackHeadSize+8*i:])
	}
	return true
}

// RawStack is a copy of a stack's memory and registers, with the hash of the stack that
// the programs found.
type RawStack struct {
	ID     uint64              // the Addr of its event
	Late   bool                // the programs had no unwind table for some of its code
	Hash   uint64              // hash of the stack that the programs found; if Late, a number for this stack alone
	Inside bool                // the function has not returned yet: its frame is still there
	Caller uint64              // its return address; a probe may have replaced it in the copy
	Regs   reference.Registers // the registers after the function has returned; if Inside, those before
	Ranges [probeRawRanges]MemoryRange
}

// MemoryRange is a copy of a range of the process's memory.
type MemoryRange struct {
	Start uint64
	Data  []byte
}

const probeRawRanges = len(object.ProbeRawStack{}.Start)

// decodeRaw reads a raw stack of a program for the machine m. It copies the data.
func decodeRaw(b []byte, m *process.Machine, s *RawStack) bool {
	if len(b) < rawHeadSize {
		return false
	}
	// The ring contains only the data that was copied: see decodeStack.
	var raw object.ProbeRawStack
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), rawHeadSize), b)
	purpose := object.ProbeRawPurpose(raw.Head.Function)
	s.Hash, s.Caller = raw.Hash, raw.Pc
	if s.Inside = purpose&object.ProbeRawPurposeRAW_INSIDE != 0; s.Inside {
		if m.StayInside == nil {
			return false
		}
		m.StayInside(&raw)
	}
	s.Regs = m.Registers(&raw)
	s.Late = purpose&^object.ProbeRawPurposeRAW_INSIDE == object.ProbeRawPurposeRAW_LATE
	data := b[rawHeadSize:]
	for i, n := range raw.Length {
		end := uint64(raw.At[i]) + uint64(n)
		if end > uint64(len(data)) {
			return false
		}
		s.Ranges[i] = MemoryRange{raw.Start[i], slices.Clone(data[raw.At[i]:end])}
	}
	return true
}

// isRaw reports whether a record of the BPF programs is a raw stack.
func isRaw(b []byte) bool {
	return len(b) >= stackHeadSize && b[unsafe.Offsetof(object.ProbeEvent{}.Head.Kind)] == KindRaw
}

// bytesOf returns the memory of words as bytes; it does not copy.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
}

// Ends reports whether e is the return of a realloc of block.
func (e *Event) Ends(block uint64) bool {
	if e.Kind == KindMove {
		return e.Old == block
	}
	return e.Addr == block
}

// AsAlloc returns the allocation that e, a move, contains.
func (e *Event) AsAlloc() Event {
	alloc := *e
	alloc.Kind, alloc.Entry = KindAlloc, 0
	return alloc
}

// Identify returns a hash of the frames and of how the stack ended. It is never 0.
func (d *StackDef) Identify() uint64 {
	h := uint64(d.End)<<1 | 1
	if d.FramePointer {
		h |= 1 << 8
	}
	for _, addr := range d.Frames {
		hi, lo := bits.Mul64(h^addr, 0x9e3779b97f4a7c15)
		h = hi ^ lo
	}
	return max(h, 1)
}
