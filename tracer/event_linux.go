package tracer

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"

	"rtrace-bpf/internal/unwind/reference"
)

// kind numbers what an event is; the first ones are those of enum record_kind.
const (
	kindAlloc      = uint8(probeRecordKindRECORD_ALLOC)
	kindFree       = uint8(probeRecordKindRECORD_FREE)
	kindMoveEnter  = uint8(probeRecordKindRECORD_MOVE_ENTER)
	kindMove       = uint8(probeRecordKindRECORD_MOVE)
	kindMoveUndone = uint8(probeRecordKindRECORD_MOVE_UNDONE)
	kindStack      = uint8(probeRecordKindRECORD_STACK)
	kindMaps       = uint8(probeRecordKindRECORD_MAPS)
	kindRaw        = uint8(probeRecordKindRECORD_RAW) // addr numbers the raw stack from the start of the trace
	kindGrowth     = uint8(probeRecordKindRECORD_GROWTH)
	kindCallStack  = uint8(probeRecordKindRECORD_CALL_STACK)
	kindSide       = uint8(0x80) // addr is an index into the batch's sides
	kindActivity   = uint8(0x83) // addr numbers one of the batch's activities
	kindFunction   = uint8(0x84) // addr numbers one of the batch's calls
)

// event is a record of the rings in user memory. It holds no pointers, so that
// queues of them cost the garbage collector nothing.
type event struct {
	time     uint64 // ns of CLOCK_MONOTONIC
	addr     uint64
	size     uint64
	stack    uint64 // hash, 0 for none
	old      uint64 // kindMove; the second half of one that was split has it, too
	entry    uint64 // kindMove: when it was entered
	tid      uint32
	pid      uint32
	function uint16
	cpu      uint16
	argument uint32
	kind     uint8
	told     uint8 // probeTold: what argument is
}

// stackDef gives the frames of a stack hash.
type stackDef struct {
	hash         uint64
	frames       []uint64
	end          probeStackEnd
	framePointer bool
	late         bool   // unwound from a copy; the hash is of one event alone
	id           uint64 // of what is left after the check, 0 before: see stream.settle
	used         uint64 // time of the last call with it
}

const (
	eventSize     = int(unsafe.Sizeof(probeEvent{}))
	moveEventSize = int(unsafe.Sizeof(probeMoveEvent{}))
	stackHeadSize = int(unsafe.Offsetof(probeStackRecord{}.Frames))
	rawHeadSize   = int(unsafe.Offsetof(probeRawStack{}.Data))
)

// isStack says whether a record of the BPF programs is a stack.
func isStack(b []byte) bool {
	return len(b) >= stackHeadSize && b[unsafe.Offsetof(probeEvent{}.Head.Kind)] == kindStack
}

// decode reads an event of the BPF programs, aligned to 8 bytes, into e. It
// returns false for what the programs never send.
func decode(b []byte, e *event) bool {
	if len(b) < eventSize {
		return false
	}
	raw := (*probeEvent)(unsafe.Pointer(unsafe.SliceData(b)))
	e.kind = raw.Head.Kind
	e.time = raw.Head.Time
	e.tid = raw.Head.Tid
	e.function = raw.Head.Function
	e.addr = raw.Addr
	e.size = raw.Size
	e.stack = raw.Stack
	e.pid = raw.Pid
	e.argument, e.told = raw.Argument, raw.Head.Told
	e.old, e.entry = 0, 0
	if e.kind == kindMove {
		if len(b) < moveEventSize {
			return false
		}
		move := (*probeMoveEvent)(unsafe.Pointer(unsafe.SliceData(b)))
		e.old, e.entry = move.Old, move.EntryTime
	}
	return e.kind >= kindAlloc && e.kind <= kindMaps && e.kind != kindStack || e.kind == kindGrowth || e.kind == kindCallStack
}

// decodeStack reads a stack; see isStack. It copies the frames, which the caller
// then owns.
func decodeStack(b []byte, s *stackDef) bool {
	// Only the frames that exist are in the ring, so the whole struct must not
	// be laid over it.
	var at probeStackRecord
	depth := int(binary.NativeEndian.Uint16(b[unsafe.Offsetof(at.Depth):]))
	if depth > (len(b)-stackHeadSize)/8 {
		return false
	}
	s.hash = binary.NativeEndian.Uint64(b[unsafe.Offsetof(at.Hash):])
	s.end = probeStackEnd(b[unsafe.Offsetof(at.End)])
	s.framePointer = b[unsafe.Offsetof(at.FramePointer)] != 0
	s.frames = make([]uint64, depth)
	for i := range s.frames {
		s.frames[i] = binary.NativeEndian.Uint64(b[stackHeadSize+8*i:])
	}
	return true
}

// rawStack is a stack as it is in memory, and what the programs made of it.
type rawStack struct {
	id     uint64              // the addr of its event
	late   bool                // the programs had no table for some of its code
	hash   uint64              // of what they made of it; late: a number for this one stack
	regs   reference.Registers // behind the return
	ranges [probeRawRanges]memoryRange
}

// memoryRange is a copy of the process's memory.
type memoryRange struct {
	start uint64
	data  []byte
}

const probeRawRanges = len(probeRawStack{}.Start)

// decodeRaw reads a raw stack of a program for m; it copies it.
func decodeRaw(b []byte, m *machine, s *rawStack) bool {
	if len(b) < rawHeadSize {
		return false
	}
	// Only the data that was copied is in the ring: see decodeStack.
	var raw probeRawStack
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), rawHeadSize), b)
	s.hash, s.regs = raw.Hash, m.registers(&raw)
	s.late = raw.Head.Function == uint16(probeRawPurposeRAW_LATE)
	data := b[rawHeadSize:]
	for i, n := range raw.Length {
		end := uint64(raw.At[i]) + uint64(n)
		if end > uint64(len(data)) {
			return false
		}
		s.ranges[i] = memoryRange{raw.Start[i], slices.Clone(data[raw.At[i]:end])}
	}
	return true
}

// isRaw says whether a record of the BPF programs is a raw stack.
func isRaw(b []byte) bool {
	return len(b) >= stackHeadSize && b[unsafe.Offsetof(probeEvent{}.Head.Kind)] == kindRaw
}

// bytesOf returns the memory of words.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
}

// ends says whether e is the return of a realloc of block.
func (e *event) ends(block uint64) bool {
	if e.kind == kindMove {
		return e.old == block
	}
	return e.addr == block
}

// asAlloc returns the second half of a move.
func (e *event) asAlloc() event {
	alloc := *e
	alloc.kind, alloc.entry = kindAlloc, 0
	return alloc
}

// identify hashes all that is known of a stack; never 0.
func (d *stackDef) identify() uint64 {
	h := uint64(d.end)<<1 | 1
	if d.framePointer {
		h |= 1 << 8
	}
	for _, addr := range d.frames {
		hi, lo := bits.Mul64(h^addr, 0x9e3779b97f4a7c15)
		h = hi ^ lo
	}
	return max(h, 1)
}
