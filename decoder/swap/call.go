package swap

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// maxArgs is how many arguments of a memory probe are parsed. No function of the
// allocator has more.
const maxArgs = 4

// probed is a memory probe.
type probed struct {
	api      uint32
	pid, tid uint32
	letters  [maxArgs]byte
	args     [maxArgs]uint64
	count    int
	result   byte // letter
	value    uint64
	caller   uint64
	callType uint32
	size     uint64
	kind     uint32 // MemoryAlloc …
	address  uint64
	bare     bool // the message lacks size, kind and address
}

// probeTail is the size of the fields after the return value: errno, call type, caller
// and two reserved fields. memoryTail is the size of the fields that a memory probe has
// after those.
const (
	probeTail  = 8 + 4 + 8 + 4 + 4
	memoryTail = 8 + 4 + 8
)

// parse parses the usual form of a memory probe: only numbers and pointers, and no
// extra bytes. It returns false for other forms, which are left to Parser.
func (p *probed) parse(data []byte) bool {
	if len(data) < 16 {
		return false
	}
	p.api = binary.LittleEndian.Uint32(data)
	p.pid = binary.LittleEndian.Uint32(data[4:])
	p.tid = binary.LittleEndian.Uint32(data[8:])
	n := binary.LittleEndian.Uint32(data[12:])
	if n > maxArgs {
		return false
	}
	p.count = int(n)
	data = data[16:]
	var ok bool
	for i := range p.count {
		if p.letters[i], p.args[i], data, ok = number(data); !ok {
			return false
		}
	}
	if p.result, p.value, data, ok = number(data); !ok || len(data) < probeTail {
		return false
	}
	p.callType = binary.LittleEndian.Uint32(data[8:])
	p.caller = binary.LittleEndian.Uint64(data[12:])
	data = data[probeTail:]
	switch p.bare = len(data) == 0; {
	case p.bare:
		return true
	case len(data) != memoryTail:
		return false
	}
	p.size = binary.LittleEndian.Uint64(data)
	p.kind = binary.LittleEndian.Uint32(data[8:])
	p.address = binary.LittleEndian.Uint64(data[12:])
	return true
}

// number reads an item that is a number, a pointer or nothing, and returns the bytes
// after it.
func number(data []byte) (letter byte, num uint64, rest []byte, ok bool) {
	if len(data) == 0 {
		return 0, 0, nil, false
	}
	letter, rest = data[0], data[1:]
	switch letter {
	case 'p', 'x':
		if len(rest) < 8 {
			return 0, 0, nil, false
		}
		return letter, binary.LittleEndian.Uint64(rest), rest[8:], true
	case 'd':
		if len(rest) < 4 {
			return 0, 0, nil, false
		}
		return letter, uint64(int64(int32(binary.LittleEndian.Uint32(rest)))), rest[4:], true
	case 'v', 'n':
		return letter, 0, rest, true
	}
	return 0, 0, nil, false
}

// signature reports whether the letters of the arguments are these.
func (p *probed) signature(letters string) bool {
	return p.count == len(letters) && string(p.letters[:p.count]) == letters
}

// complete derives size, kind and address of a probe that lacks them from its
// arguments, and reports whether it could.
func (p *probed) complete() bool {
	switch {
	case (p.result == 'v' || p.result == 'n') && p.count > 0 && p.letters[0] == 'p':
		p.kind, p.address = wire.MemoryFree, p.args[0]
		return true
	case p.result != 'p':
		return false
	}
	p.kind, p.address = wire.MemoryAlloc, p.value
	switch {
	case p.signature("x"), p.signature("xp"):
		p.size = p.args[0]
	case p.signature("xx") && p.api == wire.APICalloc, p.signature("xx") && wire.LookupAPI(wire.ProbeMemory, p.api) == nil:
		over, size := bits.Mul64(p.args[0], p.args[1])
		p.size = size
		return over == 0
	case p.signature("px"):
		p.size = p.args[1]
	default:
		return false
	}
	return true
}

// moves reports whether the probe is of a realloc. Only the first argument holds the
// old block.
func (p *probed) moves() bool {
	if p.count < 2 || p.letters[0] != 'p' || p.result != 'p' {
		return false
	}
	api := wire.LookupAPI(wire.ProbeMemory, p.api)
	if api == nil {
		return p.signature("px")
	}
	return (api.Name == "realloc" || api.Name == "reallocarray") && p.letters[1] == 'x'
}

// call makes a Call of a memory probe. It returns false if the message is not of a call
// that changed something.
func (d *Reader) call(rec *trace.Record) (bool, error) {
	var p probed
	if !p.parse(d.msg.Data) || p.bare && !p.complete() {
		return false, nil
	}
	op, id, old := trace.OpAlloc, p.address, uint64(0)
	switch p.kind {
	case wire.MemoryFree:
		op, p.size = trace.OpFree, 0
	case wire.MemoryAlloc:
		if !p.moves() {
			break
		}
		old = p.args[0]
		switch {
		case old == 0:
		case id != 0:
			op = trace.OpMove
		case p.size == 0:
			op, id, old = trace.OpFree, old, 0 // realloc freed it
		}
	default:
		return false, nil
	}
	if id == 0 {
		return false, nil // the call failed, or freed nothing
	}
	d.start(rec, trace.KindCall)
	rec.PID, rec.TID = int32(p.pid), int32(p.tid)
	d.stats.Calls++
	d.stats.CallTypes.add(p.callType)
	d.seq++
	c := &rec.Call
	c.Seq, c.Op, c.Function, c.Resource = d.seq, op, d.functions.of(&p), memory
	c.ID, c.OldID, c.Size = id, old, p.size
	c.EntryTime, c.Context, c.Index, c.Thread = 0, 0, 0, 0
	c.Caller = trace.Caller{}
	c.Stack, c.Args = trace.Stack{}, nil
	if c.Function == "calloc" && p.signature("xx") && p.args[0] != 1 {
		d.args = [2]trace.Arg{{Name: "nmemb", Value: strconv.FormatUint(p.args[0], 10)}, {Name: "size", Value: strconv.FormatUint(p.args[1], 10)}}
		c.Args = d.args[:]
	}
	return true, d.stack(&c.Stack, p.caller)
}

// stack sets the stack of a call: from the private message that follows it, or else
// from the caller.
func (d *Reader) stack(s *trace.Stack, caller uint64) error {
	d.frames = d.frames[:0]
	sequence := d.msg.Sequence
	more, err := d.s.peek(&d.ahead)
	if err == nil && more && d.ahead.ID == wire.Stack && d.framesOf(d.ahead.Data, sequence) {
		if d.ahead.Sequence != d.next {
			d.frames = d.frames[:0] // messages between the two are missing: the stack is delivered later as Opaque
		} else {
			_ = d.s.Next(&d.ahead) // peek has read it
			d.next++
			d.stats.Messages++
			s.Frames, s.End = d.frames, trace.StackUnknown
			return nil
		}
	}
	if caller != 0 && caller != wire.UnknownCaller {
		d.frames = append(d.frames, caller)
		s.Frames, s.End = d.frames, trace.StackTruncated
	}
	return nil // the next read returns the error of the following message
}

// framesOf reads the frames of a private message if it belongs to the message with the
// given sequence number.
func (d *Reader) framesOf(data []byte, sequence uint32) bool {
	if len(data) < 8 || binary.LittleEndian.Uint32(data) != sequence {
		return false
	}
	n := uint64(binary.LittleEndian.Uint32(data[4:]))
	if n == 0 || n*8 != uint64(len(data)-8) {
		return false
	}
	for i := range n {
		d.frames = append(d.frames, binary.LittleEndian.Uint64(data[8+8*i:]))
	}
	return true
}
