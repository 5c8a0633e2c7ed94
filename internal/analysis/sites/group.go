package sites

import (
	"cmp"
	"encoding/binary"
	"slices"

	"rtrace-bpf/trace"
)

// Key selects the property by which blocks are grouped.
type Key int

// The keys of groups.
const (
	ByStack    Key = iota // the frames, or without a stack the caller's function, file and line
	ByFunction            // the function that called the allocator
	ByFile                // its source file
	ByLine                // its source file and line
	ByModule              // the program or library it is in
	BySize                // the size of the block
	ByThread              // the thread that allocated
	ByProcess             // the process
)

var keyNames = [...]string{"stack", "function", "file", "line", "module", "size", "thread", "process"}

// String returns the name of a key, as ParseKey accepts it.
func (k Key) String() string { return keyNames[k] }

// ParseKey returns the key with the given name.
func ParseKey(name string) (Key, bool) {
	i := slices.Index(keyNames[:], name)
	return Key(i), i >= 0
}

// KeyNames lists the names of all keys.
func KeyNames() []string { return slices.Clone(keyNames[:]) }

// IsCaller reports whether blocks are grouped by their caller's function, file
// or line.
func (k Key) IsCaller() bool { return k == ByFunction || k == ByFile || k == ByLine }

// Options configure a Grouper.
type Options struct {
	By Key
	// Depth is the number of frames in a stack; 0 means all.
	Depth int
	// Addresses distinguishes the call sites within a function.
	Addresses bool
	// Blocks keeps each block in its group.
	Blocks bool
	Framer Framer
	// Module returns the path of the module that contains an address, for texts
	// that lack it. It may be nil.
	Module func(pid int32, addr uint64) string
	// Relative converts an address to one that is the same in each run of a
	// program, and returns its module, which is empty if unknown. nil leaves
	// addresses as they are.
	Relative func(pid int32, addr uint64) (in uint64, module string)
	// Caller chooses a caller from the stack for calls without one, and returns
	// the index of its frame, or -1. It may be nil.
	Caller func(pid int32, s *trace.Stack) (caller trace.Caller, frame int)
}

// Group is the blocks with the same key: what they have in common and their
// sums.
type Group struct {
	// Frames is the stack, the innermost frame first. Keys other than ByStack
	// have at most one frame, with the parts that the key consists of.
	Frames    []Frame
	Size      uint64 // BySize
	PID       int32  // ByThread, ByProcess
	TID       int32  // ByThread
	Thread    uint64 // ByThread: Call.Thread
	Blocks    uint64
	Bytes     uint64
	Smallest  uint64
	Largest   uint64
	FirstSeq  uint64 // Call.Seq of the oldest block
	FirstTime int64  // Record.Time of the oldest block
	List      []Block
}

// Block is one block of a Group.
type Block struct {
	Addr, Size uint64
	Index      uint64 // Call.Index
	Seq        uint64 // Call.Seq
	Time       int64
	PID, TID   int32
	Thread     uint64 // Call.Thread
	Function   string // that allocated it
}

// Grouper adds up blocks by what they have in common. Its memory grows with the
// number of groups, and of the blocks if they are kept.
type Grouper struct {
	options Options
	groups  []*Group
	byKey   map[string]int
	names   Names

	key    []byte
	frames []Frame
}

// NewGrouper returns an empty Grouper.
func NewGrouper(o Options) *Grouper {
	return &Grouper{options: o, byKey: make(map[string]int)}
}

// Add adds the block that a call allocated and returns the number of its group.
// It keeps no reference to the contents of r.
func (g *Grouper) Add(r *trace.Record) int {
	c := &r.Call
	n := g.Find(r)
	to := g.groups[n]
	if to.Blocks == 0 {
		to.Smallest, to.FirstSeq, to.FirstTime = c.Size, c.Seq, r.Time
	}
	to.Blocks++
	to.Bytes += c.Size
	to.Smallest, to.Largest = min(to.Smallest, c.Size), max(to.Largest, c.Size)
	if g.options.Blocks {
		to.List = append(to.List, Block{
			Addr: c.ID, Size: c.Size, Index: c.Index, Seq: c.Seq, Time: r.Time, PID: r.PID, TID: r.TID, Thread: c.Thread,
			Function: g.names.Text(g.names.Add(c.Function)),
		})
	}
	return n
}

// Find returns the number of the group that a call's block belongs to, counted
// from 0 in order of appearance. It changes no sums and keeps no reference to
// the contents of r.
func (g *Grouper) Find(r *trace.Record) int {
	c := &r.Call
	g.frames, g.key = g.frames[:0], g.key[:0]
	probe := Group{}
	switch g.options.By {
	case BySize:
		probe.Size = c.Size
		g.number(c.Size)
	case ByThread:
		probe.PID, probe.TID, probe.Thread = r.PID, r.TID, c.Thread
		g.number(uint64(uint32(r.PID))<<32 | uint64(uint32(r.TID)))
		g.number(c.Thread)
	case ByProcess:
		probe.PID = r.PID
		g.number(uint64(uint32(r.PID)))
	default:
		g.place(r)
	}
	if n, ok := g.byKey[string(g.key)]; ok {
		return n
	}
	n := len(g.groups)
	created := probe // so that probe does not escape to the heap
	created.Frames = slices.Clone(g.frames)
	g.byKey[string(g.key)] = n
	g.groups = append(g.groups, &created)
	return n
}

// At returns the group with a number from Find.
func (g *Grouper) At(n int) *Group { return g.groups[n] }

// Len returns the number of groups.
func (g *Grouper) Len() int { return len(g.groups) }

// place builds the frames of a group and its key.
func (g *Grouper) place(r *trace.Record) {
	o := &g.options
	c := &r.Call
	depth := o.Depth
	if o.By != ByStack {
		depth = 1
	}
	g.frames = o.Framer.Append(g.frames, r.PID, &c.Stack, &c.Caller, depth)
	if o.By.IsCaller() {
		g.caller(&g.frames[0], r)
	}
	if o.By != ByStack {
		g.reduce(&g.frames[0], r.PID)
	}
	for i := range g.frames {
		f := &g.frames[i]
		if !o.Addresses {
			f.dropAddress()
		}
		if o.Relative != nil && f.Addr != 0 {
			in, module := o.Relative(r.PID, f.Addr)
			if f.Addr = in; f.Module == "" {
				f.Module = module
			}
		}
		g.key = f.AppendKey(g.key)
	}
}

// caller replaces the innermost frame with the call's caller, if that is known.
// The text of the frame may contain only the function, and the frame may belong
// to a library.
func (g *Grouper) caller(f *Frame, r *trace.Record) {
	o := &g.options
	stack, caller, at := &r.Call.Stack, r.Call.Caller, -1
	if caller == (trace.Caller{}) && o.Caller != nil {
		caller, at = o.Caller(r.PID, stack)
	}
	p := o.Framer.Caller(&caller)
	if p.Function == "" || f.Function != "" && f.File != "" {
		return
	}
	switch {
	case at >= 0:
		frame := o.Framer.frame(r.PID, stack, at)
		p.Module, f.Addr = frame.Module, frame.Addr
	case p.Function == f.Function:
		p.Module = f.Module
	case f.Function != "":
		f.Addr = 0 // belongs to another function
	}
	f.Place = p
}

// reduce clears the parts of a frame that are not in the key.
func (g *Grouper) reduce(f *Frame, pid int32) {
	switch g.options.By {
	case ByFunction:
		if !g.options.Addresses {
			f.ToFunction()
		}
	case ByFile:
		*f = Frame{Place: Place{File: f.File}}
	case ByLine:
		if f.File != "" {
			f.Module = ""
		}
	case ByModule:
		if f.Module == "" && f.Addr != 0 && g.options.Module != nil {
			f.Module = g.options.Module(pid, f.Addr)
		}
		*f = Frame{Place: Place{Module: f.Module}}
	}
}

func (g *Grouper) number(n uint64) { g.key = binary.LittleEndian.AppendUint64(g.key, n) }

// Total returns the number and the size of all blocks.
func (g *Grouper) Total() (blocks, bytes uint64) {
	for _, x := range g.groups {
		blocks += x.Blocks
		bytes += x.Bytes
	}
	return blocks, bytes
}

// Groups returns the groups, the largest first.
func (g *Grouper) Groups() []*Group {
	groups := slices.Clone(g.groups)
	slices.SortStableFunc(groups, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Blocks, a.Blocks))
	})
	return groups
}
