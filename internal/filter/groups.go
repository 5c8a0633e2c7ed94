package filter

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Groups collects the calls of a trace and groups those whose stacks have the
// same frames, whatever their operation and resource. It takes about 15 bytes a
// call, and stores each distinct stack once.
type Groups struct {
	// Stackless ignores calls without a stack in the trace, not even an empty
	// one.
	Stackless bool
	// Narrow adds up sizes as signed 32-bit numbers.
	Narrow bool

	names  sites.Names
	places sites.Table
	args   map[argsOf][]trace.Arg

	groups []group
	index  []slot // open addressing by the hash of the frames

	recent [2]named // functions of the last calls, mostly an allocation and a free

	stack []uint64 // of the last record
	texts []string
}

// slot is a group and the hash of its frames.
type slot struct {
	hash  uint32
	group uint32 // 1 + its number; 0 is an empty slot
}

const firstSlots = 1 << 8

// named is a string with its number.
type named struct {
	text   string
	number uint32
}

// argsOf identifies a call with arguments.
type argsOf struct {
	group uint32
	call  uint64
}

// group holds the calls of one stack.
type group struct {
	place         uint32 // of the first call
	bucket        uint32
	pid           int32 // of the first call
	blocks, bytes uint64
	last          packed
	piece         []byte   // the piece that calls are packed into; pieces are never moved
	full          [][]byte // the pieces before it
}

// NewGroups returns Groups without calls.
func NewGroups() *Groups {
	return &Groups{args: make(map[argsOf][]trace.Arg), index: make([]slot, firstSlots)}
}

// Add adds a call. It keeps no reference to the contents of r.
func (g *Groups) Add(r *trace.Record) {
	c := &r.Call
	if g.Stackless && c.Stack.End == trace.StackAbsent && len(c.Stack.Frames) == 0 {
		return
	}
	n := g.group(&c.Stack)
	in := &g.groups[n]
	if len(c.Args) > 0 {
		g.args[argsOf{n, in.blocks}] = g.cloneArgs(c.Args)
	}
	if in.blocks == 0 {
		in.pid = r.PID
	}
	if cap(in.piece)-len(in.piece) < maxPacked {
		in.turn()
	}
	in.piece = in.last.append(in.piece, r, g.function(c.Function))
	in.blocks++
	in.bytes += c.Size
}

// function is names.Add with a cache of the last few names.
func (g *Groups) function(name string) uint32 {
	for i := range g.recent {
		if x := &g.recent[i]; x.text == name && x.number != 0 {
			return x.number
		}
	}
	n := g.names.Add(name)
	g.recent[1] = g.recent[0]
	g.recent[0] = named{g.names.Text(n), n}
	return n
}

// Sizes of the pieces that calls are packed into, in bytes.
const (
	firstPiece = 64
	lastPiece  = 4 << 10
)

// turn begins a new piece.
func (g *group) turn() {
	size := firstPiece
	if g.piece != nil {
		size = min(2*cap(g.piece), lastPiece)
		g.full = append(g.full, g.piece)
	}
	g.piece = make([]byte, 0, size)
}

func (g *Groups) cloneArgs(args []trace.Arg) []trace.Arg {
	all := make([]trace.Arg, len(args))
	for i, a := range args {
		all[i] = trace.Arg{Name: g.names.Text(g.names.Add(a.Name)), Value: strings.Clone(a.Value)}
	}
	return all
}

// group returns the number of the group for a stack's frames, creating it if
// needed. The other properties of a stack count only if it is the first of its
// group.
func (g *Groups) group(s *trace.Stack) uint32 {
	h := uint32(sites.HashFrames(s.Frames))
	mask := uint32(len(g.index) - 1)
	i := h & mask
	for ; g.index[i].group != 0; i = (i + 1) & mask {
		if x := g.index[i]; x.hash == h && slices.Equal(g.places.Frames(g.groups[x.group-1].place), s.Frames) {
			return x.group - 1
		}
	}
	place := g.places.Add(s, &trace.Caller{}, &g.names)
	if place == 0 && len(s.Frames) > 0 { // the table is full
		return g.group(&trace.Stack{})
	}
	n := uint32(len(g.groups))
	g.groups = append(g.groups, group{place: place, bucket: bucket(s.Frames)})
	g.index[i] = slot{h, n + 1}
	if 2*len(g.groups) >= len(g.index) {
		g.grow()
	}
	return n
}

// grow doubles the index.
func (g *Groups) grow() {
	old := g.index
	g.index = make([]slot, 2*len(old))
	mask := uint32(len(g.index) - 1)
	for _, x := range old {
		if x.group == 0 {
			continue
		}
		i := x.hash & mask
		for ; g.index[i].group != 0; i = (i + 1) & mask {
		}
		g.index[i] = x
	}
}

// bucket returns the bucket of a stack in the table of the original
// post-processor, which determines the order of otherwise equal groups.
func bucket(frames []uint64) uint32 {
	var h uint64
	for _, f := range frames {
		for ; f != 0; f >>= 3 {
			h ^= f & 0xffff
		}
	}
	return uint32(h)
}

// Order is an order of groups.
type Order func(a, b Group) int

// Orders are the orders of the sp-rtrace post-processor, by the names of its
// option.
var Orders = map[string]Order{
	"size":      func(a, b Group) int { return b.compareBytes(a) },
	"size-asc":  func(a, b Group) int { return a.compareBytes(b) },
	"count":     func(a, b Group) int { return cmp.Compare(b.Blocks, a.Blocks) },
	"count-asc": func(a, b Group) int { return cmp.Compare(a.Blocks, b.Blocks) },
}

// Group is the sum of the calls of one stack.
type Group struct {
	Blocks uint64 // calls
	Bytes  uint64 // sum of their sizes
	of     *group
	number int
	narrow bool
}

// compareBytes compares the sums of two groups. Narrow sums are compared by the
// sign of their 32-bit difference, as in the original, which is wrong from 2^31
// on.
func (g Group) compareBytes(than Group) int {
	if g.narrow {
		return cmp.Compare(int32(uint32(g.Bytes)-uint32(than.Bytes)), 0)
	}
	return cmp.Compare(g.Bytes, than.Bytes)
}

// Sorted returns the groups in the given order. Groups that are equal in it are
// in the order of the original's table, then of the trace.
func (g *Groups) Sorted(order Order) []Group {
	all := make([]Group, len(g.groups))
	for i := range g.groups {
		all[i] = Group{g.groups[i].blocks, g.groups[i].bytes, &g.groups[i], i, g.Narrow}
	}
	slices.SortStableFunc(all, func(a, b Group) int { return cmp.Compare(a.of.bucket, b.of.bucket) })
	slices.SortStableFunc(all, order)
	return all
}

// Calls calls visit with each call of a group, in the order of the trace. It
// stores the calls in r. They have no stack.
func (g *Groups) Calls(of Group, r *trace.Record, visit func(*trace.Record) error) error {
	var k packed
	r.Kind, r.TID, r.CPU, r.Call = trace.KindCall, 0, 0, trace.Call{}
	c := &r.Call
	number := uint32(of.number)
	var data []byte
	full := of.of.full
	for n := range of.of.blocks {
		if len(data) == 0 {
			if data = of.of.piece; len(full) > 0 {
				data, full = full[0], full[1:]
			}
		}
		data = k.next(data)
		r.Time, r.PID = k.time, k.pid
		c.Seq, c.Op, c.Function, c.Resource = k.seq, k.op, g.names.Text(k.function), k.resource
		c.ID, c.Size, c.Context = k.id, k.size, k.context
		c.Args = nil
		if k.args {
			c.Args = g.args[argsOf{number, n}]
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// Stack returns the stack of a group's first call and the process of that call.
// The stack is valid until the next call of Stack.
func (g *Groups) Stack(of Group) (s trace.Stack, pid int32) {
	g.stack, g.texts = g.stack[:0], g.texts[:0]
	s, _ = g.places.Place(of.of.place, &g.names, &g.stack, &g.texts)
	return s, of.of.pid
}
