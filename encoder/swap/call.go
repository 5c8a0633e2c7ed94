package swap

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// resources holds the kind of each resource.
type resources struct {
	declared map[uint32]kind
}

// kind is how calls of a resource are written.
type kind struct {
	memory bool
	object *wire.Object // nil: it has no message
}

func (x *resources) reset() { clear(x.declared) }

func (x *resources) add(r *trace.Resource) {
	if x.declared == nil {
		x.declared = map[uint32]kind{}
	}
	x.declared[r.ID] = kind{r.Type == wire.Resource, wire.LookupObject(r.Type)}
}

// of returns how a call is written: as a call of memory (nil), which every undeclared
// resource is, or of another object. foreign reports that there is no message for it. ok is
// false for a call that is not written.
func (x *resources) of(c *trace.Call) (t *wire.Object, foreign, ok bool) {
	k, known := x.declared[c.Resource]
	switch {
	case !known || k.memory:
		return nil, false, c.Op != trace.OpNone && c.ID != 0
	case k.object == nil || c.Op == trace.OpMove:
		return nil, true, false
	case k.object.Resource == wire.Descriptor:
		return k.object, false, c.Op != trace.OpNone && c.ID <= math.MaxInt32
	}
	return k.object, false, c.Op != trace.OpNone && c.ID != 0
}

// Positions returns a function that reports how many calls a reader of the stream will
// deliver for a record. Call it with every record of a trace, in order.
func Positions() func(*trace.Record) int {
	var x resources
	return func(r *trace.Record) int {
		switch r.Kind {
		case trace.KindHeader:
			x.reset()
		case trace.KindResource:
			x.add(&r.Resource)
		case trace.KindCall:
			if _, _, ok := x.of(&r.Call); ok {
				return 1
			}
		}
		return 0
	}
}

// callType marks an instrumented caller: the whole process is instrumented.
const callType = 1

func (m *Writer) call(r *trace.Record) {
	c := &r.Call
	switch t, foreign, ok := m.resources.of(c); {
	case foreign:
		m.stats.Foreign++
		return
	case !ok:
		return
	case t != nil:
		m.object(r, t)
		return
	}
	api, added := m.apis.allocator(c)
	if added {
		m.name(api, r.Time)
	}
	m.begin(wire.ProbeMemory, r.Time)
	number := m.seq - 1
	b := binary.LittleEndian.AppendUint32(m.out.Buf, api.ID)
	b = binary.LittleEndian.AppendUint32(b, uint32(r.PID))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.TID))
	b = appendArgs(b, api, c)
	caller := uint64(wire.UnknownCaller)
	if len(c.Stack.Frames) > 0 {
		caller = c.Stack.Frames[0]
	}
	size, kind := c.Size, uint32(wire.MemoryAlloc)
	if c.Op == trace.OpFree {
		b = append(b, 'v')
		size, kind = 0, wire.MemoryFree
	} else {
		b = appendNumber(b, 'p', c.ID)
	}
	b = binary.LittleEndian.AppendUint64(b, 0) // errno
	b = binary.LittleEndian.AppendUint32(b, callType)
	b = binary.LittleEndian.AppendUint64(b, caller)
	b = binary.LittleEndian.AppendUint64(b, 0) // reserved
	b = binary.LittleEndian.AppendUint64(b, size)
	b = binary.LittleEndian.AppendUint32(b, kind)
	m.out.Buf = binary.LittleEndian.AppendUint64(b, c.ID)
	m.end()
	if len(c.Stack.Frames) > 1 && !m.opts.NoStacks {
		m.frames(r.Time, number, c.Stack.Frames)
	}
}

func appendNumber(b []byte, letter byte, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, letter), v)
}

// appendArgs appends the known arguments. Functions with more than the blocks and the
// size have those left out at the end.
func appendArgs(b []byte, api *wire.API, c *trace.Call) []byte {
	count := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
	switch {
	case c.Op == trace.OpFree:
		return appendNumber(count(1), 'p', c.ID)
	case c.Op == trace.OpMove || strings.HasPrefix(api.Name, "realloc"):
		return appendNumber(appendNumber(count(2), 'p', c.OldID), 'x', c.Size)
	case api.ID == wire.APICalloc:
		n, size := factors(c)
		return appendNumber(appendNumber(count(2), 'x', n), 'x', size)
	}
	return appendNumber(count(1), 'x', c.Size)
}

// factors returns the arguments of a calloc: those in the Call, or else one block of
// the whole size.
func factors(c *trace.Call) (n, size uint64) {
	if len(c.Args) == 2 {
		a, err1 := strconv.ParseUint(c.Args[0].Value, 0, 64)
		b, err2 := strconv.ParseUint(c.Args[1].Value, 0, 64)
		if over, product := bits.Mul64(a, b); err1 == nil && err2 == nil && over == 0 && product == c.Size {
			return a, b
		}
	}
	return 1, c.Size
}

// name writes a message with the name of a function.
func (m *Writer) name(api *wire.API, now int64) {
	m.begin(wire.APIName, now)
	m.u32(api.ID)
	m.text(api.Name)
	m.end()
}

// frames writes the private message with the whole stack of a message.
func (m *Writer) frames(now int64, number uint32, frames []uint64) {
	if n := (wire.MaxPayload - 8) / 8; len(frames) > n {
		frames = frames[:n]
		m.long++
	}
	m.begin(wire.Stack, now)
	m.u32(number)
	m.u32(uint32(len(frames)))
	at := len(m.out.Buf)
	m.out.Buf = slices.Grow(m.out.Buf, 8*len(frames))[:at+8*len(frames)]
	for b := m.out.Buf[at:]; len(frames) > 0; b, frames = b[8:], frames[1:] {
		binary.LittleEndian.PutUint64(b, frames[0])
	}
	m.end()
}
