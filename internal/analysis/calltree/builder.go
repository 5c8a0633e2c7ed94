// Package calltree adds up allocations by each function on their stacks, and by
// each call from one function to another.
//
// A node is a function, a library whose function is unknown, or the traced
// function, which is the innermost node of a stack. Nodes are named as in
// sp-rtrace's rtrace-calltree, because users' filters are prefixes of these
// names: "main() at demo.c:12", "main() in demo", "libc", "malloc<memory>".
package calltree

import (
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Options select the allocations that count and the frames that become nodes.
type Options struct {
	MinSize, MaxSize uint64 // bytes of an allocation; MaxSize 0 means any
	// Depth is the number of frames of each stack that are used, from the
	// innermost; 0 means all.
	Depth int
	// Join names functions, source files and libraries whose frames become one
	// node each.
	Join []string
	// Stop holds prefixes of node names. The frames outside of such a node are
	// ignored.
	Stop []string
	// Only holds prefixes of node names. Stacks without such a node do not
	// count.
	Only []string
	// OnlyArgs holds prefixes of the first argument's value. Calls without such
	// an argument do not count. It implies Args.
	OnlyArgs []string
	// Args uses the value of a call's first argument as the name of the
	// innermost node, instead of the traced function.
	Args bool
	// Nodes are left out of stacks if their name begins with one of Ignore or
	// contains one of IgnoreMiddle, unless it begins with one of Keep.
	Ignore, IgnoreMiddle, Keep []string
	// Name returns the text of a frame that has none or "in ??". It may be nil.
	Name func(pid int32, addr uint64) string
	// Source returns the source name of a function for its linker symbol. It is
	// used for callers of calls without a stack, and may be nil.
	Source func(function string) string
}

// Builder collects the allocations of a trace. Its memory grows with the number
// of distinct stacks.
type Builder struct {
	opts      Options
	places    sites.Table
	texts     sites.Names
	resources map[uint32]string // types of the declared resources
	byKey     map[key]int
	sums      []sum
}

// key identifies the allocations that are counted together as one trace.
type key struct {
	place, function, argument uint32 // argument is 0 without one
	resource                  uint32
	pid                       int32
}

type sum struct {
	key
	calls, bytes, top uint64
}

// NewBuilder returns a Builder without allocations.
func NewBuilder(o Options) *Builder {
	o.Args = o.Args || len(o.OnlyArgs) > 0
	return &Builder{opts: o, resources: make(map[uint32]string), byKey: make(map[key]int)}
}

// Add processes a record. Resources and calls that allocate count; other
// records are ignored. Add keeps no reference to the contents of r.
func (b *Builder) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindResource:
		b.resources[r.Resource.ID] = sites.Printable(r.Resource.Type)
	case trace.KindCall:
		if c := &r.Call; c.Op == trace.OpAlloc || c.Op == trace.OpMove {
			b.call(r.PID, c)
		}
	}
}

func (b *Builder) call(pid int32, c *trace.Call) {
	if c.Size < b.opts.MinSize || b.opts.MaxSize > 0 && c.Size > b.opts.MaxSize {
		return
	}
	stack := c.Stack
	if d := b.opts.Depth; d > 0 && d < len(stack.Frames) {
		if len(stack.Names) == len(stack.Frames) {
			stack.Names = stack.Names[:d]
		}
		stack.Frames = stack.Frames[:d]
	}
	// How a stack ended does not matter to nodes.
	stack.End, stack.FramePointer, stack.Reason = trace.StackUnknown, false, ""
	caller := c.Caller
	if len(stack.Frames) > 0 {
		caller = trace.Caller{}
	}
	k := key{
		place:    b.places.Add(&stack, &caller, &b.texts),
		function: b.texts.Add(c.Function),
		resource: c.Resource,
		pid:      pid,
	}
	if b.opts.Args && len(c.Args) > 0 {
		if value := strings.TrimSpace(c.Args[0].Value); value != "" {
			k.argument = b.texts.Add(value)
		}
	}
	i, ok := b.byKey[k]
	if !ok {
		i = len(b.sums)
		b.byKey[k] = i
		b.sums = append(b.sums, sum{key: k})
	}
	s := &b.sums[i]
	s.calls++
	s.bytes += c.Size
	s.top = max(s.top, c.ID)
}

// traced returns the name of the innermost node for a key.
func (b *Builder) traced(k *key) string {
	if k.argument != 0 {
		return sites.Printable(b.texts.Text(k.argument))
	}
	function := sites.Printable(b.texts.Text(k.function))
	if typ := b.resources[k.resource]; typ != "" && len(b.resources) > 1 {
		function += "<" + typ + ">"
	}
	return function
}

// Tree returns the tree of all allocations so far.
func (b *Builder) Tree() *Tree {
	t := &treeBuilder{
		names:  namer{opts: &b.opts, frames: make(map[string]name)},
		tree:   new(Tree),
		byName: make(map[string]*Node),
		edges:  make(map[[2]*Node]*Edge),
	}
	var (
		frames []uint64
		texts  []string
	)
	for i := range b.sums {
		frames, texts = frames[:0], texts[:0]
		stack, caller := b.places.Place(b.sums[i].place, &b.texts, &frames, &texts)
		t.add(b, &b.sums[i], &stack, &caller)
	}
	t.finish()
	return t.tree
}
