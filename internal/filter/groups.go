package filter

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Groups keeps the calls of a trace and puts those together whose stacks have
// the same frames, whatever they did and to which resource. It takes 72 bytes a
// call, and each different stack once.
type Groups struct {
	// Stackless leaves calls out for which the trace has no stack, not even an
	// empty one.
	Stackless bool
	// Narrow adds up sizes in 32 bits with sign.
	Narrow bool

	chunks [][]grouped
	n      uint32
	names  sites.Names
	places sites.Table
	args   map[uint32][]trace.Arg

	groups  []group
	byPlace []uint32          // 1 + the group of a place, 0 while it has none
	frames  map[string]uint32 // 1 + the group of these frames

	recent  string // function of the last call
	recentN uint32

	stack []uint64 // of the record made last
	texts []string
}

// grouped is one call.
type grouped struct {
	seq, id, size      uint64
	time               int64
	function, resource uint32
	context, next      uint32 // next is 1 + the number of the group's next call
	pid, tid           int32
	op                 trace.Op
	args               bool
}

// group is the calls of one stack.
type group struct {
	place         uint32 // of the first call
	first, last   uint32 // calls
	bucket        uint32
	blocks, bytes uint64
}

// NewGroups returns Groups without calls.
func NewGroups() *Groups {
	return &Groups{args: make(map[uint32][]trace.Arg), frames: make(map[string]uint32)}
}

const (
	groupChunkBits = 12
	groupChunkSize = 1 << groupChunkBits
)

func (g *Groups) at(n uint32) *grouped {
	return &g.chunks[n>>groupChunkBits][n&(groupChunkSize-1)]
}

// Add takes a call. It keeps nothing that r refers to.
func (g *Groups) Add(r *trace.Record) {
	c := &r.Call
	if g.Stackless && c.Stack.End == trace.StackAbsent && len(c.Stack.Frames) == 0 {
		return
	}
	place := g.places.Add(&c.Stack, &trace.Caller{}, &g.names)
	in := &g.groups[g.group(place, c.Stack.Frames)]
	if c.Function != g.recent || g.recentN == 0 {
		g.recentN = g.names.Add(c.Function)
		g.recent = g.names.Text(g.recentN)
	}
	n := g.n
	g.n++
	if n>>groupChunkBits == uint32(len(g.chunks)) {
		g.chunks = append(g.chunks, make([]grouped, groupChunkSize))
	}
	*g.at(n) = grouped{
		seq: c.Seq, id: c.ID, size: c.Size, time: r.Time, function: g.recentN, resource: c.Resource,
		context: c.Context, pid: r.PID, tid: r.TID, op: c.Op, args: len(c.Args) > 0,
	}
	if len(c.Args) > 0 {
		g.args[n] = g.cloneArgs(c.Args)
	}
	if in.blocks > 0 {
		g.at(in.last).next = n + 1
	} else {
		in.first = n
	}
	in.last = n
	in.blocks++
	in.bytes += c.Size
}

func (g *Groups) cloneArgs(args []trace.Arg) []trace.Arg {
	all := make([]trace.Arg, len(args))
	for i, a := range args {
		all[i] = trace.Arg{Name: g.names.Text(g.names.Add(a.Name)), Value: strings.Clone(a.Value)}
	}
	return all
}

// group returns the number of the group of a place, which is new if no place
// with the same frames was there before.
func (g *Groups) group(place uint32, frames []uint64) uint32 {
	for uint32(len(g.byPlace)) <= place {
		g.byPlace = append(g.byPlace, 0)
	}
	if n := g.byPlace[place]; n != 0 {
		return n - 1
	}
	key := string(appendWords(nil, frames))
	n := g.frames[key]
	if n == 0 {
		g.groups = append(g.groups, group{place: place, bucket: bucket(frames)})
		n = uint32(len(g.groups))
		g.frames[key] = n
	}
	g.byPlace[place] = n
	return n - 1
}

func appendWords(b []byte, words []uint64) []byte {
	for _, w := range words {
		for range 8 {
			b = append(b, byte(w))
			w >>= 8
		}
	}
	return b
}

// bucket is where the table of the original post-processor puts a stack. It
// decides the order of groups that are equal otherwise.
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

// Orders are those that the sp-rtrace post-processor has, by the names of its option.
var Orders = map[string]Order{
	"size":      func(a, b Group) int { return b.compareBytes(a) },
	"size-asc":  func(a, b Group) int { return a.compareBytes(b) },
	"count":     func(a, b Group) int { return cmp.Compare(b.Blocks, a.Blocks) },
	"count-asc": func(a, b Group) int { return cmp.Compare(a.Blocks, b.Blocks) },
}

// Group is the calls of one stack.
type Group struct {
	Blocks uint64 // calls
	Bytes  uint64 // the sum of their sizes
	of     *group
	narrow bool
}

func (g Group) compareBytes(than Group) int {
	if g.narrow {
		return cmp.Compare(int32(uint32(g.Bytes)), int32(uint32(than.Bytes)))
	}
	return cmp.Compare(g.Bytes, than.Bytes)
}

// Sorted returns the groups in the given order. Those that are equal in it are
// in the order of the original's table, then in that of the trace.
func (g *Groups) Sorted(order Order) []Group {
	all := make([]Group, len(g.groups))
	for i := range g.groups {
		all[i] = Group{g.groups[i].blocks, g.groups[i].bytes, &g.groups[i], g.Narrow}
	}
	slices.SortStableFunc(all, func(a, b Group) int { return cmp.Compare(a.of.bucket, b.of.bucket) })
	slices.SortStableFunc(all, order)
	return all
}

// Calls calls visit for each call of a group, in the order of the trace. The
// records have no stack.
func (g *Groups) Calls(of Group, r *trace.Record, visit func(*trace.Record) error) error {
	for n := of.of.first + 1; n != 0; {
		k := g.at(n - 1)
		r.Kind, r.Time, r.PID, r.TID, r.CPU = trace.KindCall, k.time, k.pid, k.tid, 0
		r.Call = trace.Call{
			Seq: k.seq, Op: k.op, Function: g.names.Text(k.function), Resource: k.resource,
			ID: k.id, Size: k.size, Context: k.context,
		}
		if k.args {
			r.Call.Args = g.args[n-1]
		}
		if err := visit(r); err != nil {
			return err
		}
		n = k.next
	}
	return nil
}

// Stack returns the stack of a group's first call, and which process that was
// of. It is valid until the next call of Stack.
func (g *Groups) Stack(of Group) (s trace.Stack, pid int32) {
	g.stack, g.texts = g.stack[:0], g.texts[:0]
	s, _ = g.places.Place(of.of.place, &g.names, &g.stack, &g.texts)
	return s, g.at(of.of.first).pid
}
