// Package calltree adds up allocations for every function of the stacks that
// they were made through, and for every call from one function to another.
//
// A node is a function, or a library whose function is not known, or the traced
// function itself, which is the innermost node of its stacks. Nodes have the
// names that rtrace-calltree of sp-rtrace gives them, since its users' filters
// are prefixes of those: "main() at demo.c:12", "main() in demo", "libc",
// "malloc<memory>".
package calltree

import (
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// Options say which allocations count, and what becomes a node.
type Options struct {
	MinSize, MaxSize uint64 // bytes of an allocation; MaxSize 0 means any
	// Depth is how many frames of a stack are looked at, from the innermost;
	// 0 means all.
	Depth int
	// Join names functions, source files and libraries that become one node.
	Join []string
	// Stop holds beginnings of nodes' names: the frames outside of one such
	// node are not looked at.
	Stop []string
	// Only holds beginnings of names: stacks without such a node do not count.
	Only []string
	// OnlyArgs holds the same of first arguments. It implies Args.
	OnlyArgs []string
	// Args puts the value of a call's first argument in place of the traced
	// function.
	Args bool
	// Nodes are left out of the stacks whose name begins with one of Ignore
	// or contains one of IgnoreMiddle, but not with one of Keep.
	Ignore, IgnoreMiddle, Keep []string
	// Name returns the text of a frame that has none or "in ??". It may be nil.
	Name func(pid int32, addr uint64) string
	// Source returns a function's name as the source has it, of what the linker
	// knows, for callers of calls without a stack. It may be nil.
	Source func(function string) string
}

// Builder collects the allocations of a trace. Its memory is that of the distinct
// stacks.
type Builder struct {
	opts      Options
	places    sites.Table
	texts     sites.Names
	resources map[uint32]string // types of those that are declared
	byKey     map[key]int
	sums      []sum
}

// key is what allocations have in common that count as one trace.
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

// Add takes a record: what it needs are resources and calls. Only what
// allocates counts. It keeps nothing that r refers to.
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
	// How a stack ended is none of what a node tells.
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

// traced is the name of the innermost node of what has a key in common.
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

// Tree makes the tree of what was added so far.
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
