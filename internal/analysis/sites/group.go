package sites

import (
	"cmp"
	"encoding/binary"
	"slices"

	"rtrace-bpf/trace"
)

// Key says which blocks belong together.
type Key int

// The keys of groups.
const (
	ByStack    Key = iota // the frames; of calls without a stack the caller's function, file and line
	ByFunction            // the function that called the allocator
	ByFile                // its source file
	ByLine                // its source file and line
	ByModule              // the program or library it is in
	BySize                // the size of the block
	ByThread              // the thread that allocated
	ByProcess             // the process
)

var keyNames = [...]string{"stack", "function", "file", "line", "module", "size", "thread", "process"}

// String returns the name of a key, as ParseKey takes it.
func (k Key) String() string { return keyNames[k] }

// ParseKey returns the key with the given name.
func ParseKey(name string) (Key, bool) {
	i := slices.Index(keyNames[:], name)
	return Key(i), i >= 0
}

// KeyNames lists the names of all keys.
func KeyNames() []string { return slices.Clone(keyNames[:]) }

// IsCaller says whether blocks belong together by the caller that Call.Caller
// states: its function, file or line.
func (k Key) IsCaller() bool { return k == ByFunction || k == ByFile || k == ByLine }

// Options of a Grouper.
type Options struct {
	By Key
	// Depth is how many frames make a stack; 0 means all.
	Depth int
	// Addresses tells apart the call sites within one function.
	Addresses bool
	// Blocks keeps each block in its group.
	Blocks bool
	Framer Framer
	// Module returns the path of the module that an address is in, for texts
	// that do not say. It may be nil.
	Module func(pid int32, addr uint64) string
	// Relative returns what an address is in each run of a program, and the
	// module that it is in, empty if that is not known; frames have that
	// instead. nil leaves addresses as they are.
	Relative func(pid int32, addr uint64) (in uint64, module string)
	// Caller chooses the caller of calls that do not state it, and says which
	// frame of the stack it is, or -1. It may be nil.
	Caller func(pid int32, s *trace.Stack) (caller trace.Caller, frame int)
}

// Group is what the blocks with the same key have in common, and their sums.
type Group struct {
	// Frames is the stack, from the innermost; other keys than ByStack have at
	// most one, with those parts that the key is made of.
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

// Grouper adds up blocks by what they have in common. Its memory is that of the
// groups, and of the blocks if they are kept.
type Grouper struct {
	options Options
	groups  []*Group
	byKey   map[string]int
	names   Names

	key    []byte
	frames []Frame
}

// NewGrouper returns a Grouper without groups.
func NewGrouper(o Options) *Grouper {
	return &Grouper{options: o, byKey: make(map[string]int)}
}

// Add takes the call that allocated a block. It keeps nothing that r refers to.
func (g *Grouper) Add(r *trace.Record) {
	c := &r.Call
	to := g.groups[g.Find(r)]
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
}

// Find returns the number of the group that a call's block belongs to, counted
// from 0 in the order in which groups were found. It adds nothing to the sums
// and keeps nothing that r refers to.
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
	created := probe // so that the others stay on the stack
	created.Frames = slices.Clone(g.frames)
	g.byKey[string(g.key)] = n
	g.groups = append(g.groups, &created)
	return n
}

// At returns the group with a number that Find returned.
func (g *Grouper) At(n int) *Group { return g.groups[n] }

// Len is how many groups there are.
func (g *Grouper) Len() int { return len(g.groups) }

// place makes the frames of the group, and its key of them.
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
			f.forget()
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

// caller puts the caller of a call in place of the innermost frame, of which the
// stack's text may tell the function alone, or which may be of a library.
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
		f.Addr = 0 // of another function
	}
	f.Place = p
}

// reduce leaves of a frame what the key is made of.
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

// Total is the number and the size of all blocks.
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
