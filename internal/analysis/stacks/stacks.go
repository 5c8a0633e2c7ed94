// Package stacks sums up what was allocated by whole stacks, as profilers show
// it: each stack is a list of locations in mapped files, and a location has a
// line for the function there and for each that the compiler put into it.
//
// Memory is that of the live blocks, of the different stacks, and of the threads
// and functions that allocate from each, if those are told apart.
package stacks

import (
	"encoding/binary"
	"slices"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/trace"
)

// Line is a function and a place in it. Unknown parts are zero.
type Line struct {
	Function string // as the source has it
	System   string // as the linker knows it, if that is known
	File     string
	Line     uint64 // counted from 1
}

// Mapping is what is mapped at [Start, End).
type Mapping struct {
	Start, End uint64
	Offset     uint64 // in the file
	Placed     bool   // Offset is known
	Path       string
	BuildID    string // in hexadecimal; empty if unknown
}

// Location is a place in a stack.
type Location struct {
	// Addr is the return address, 0 if the place is known by its name alone.
	Addr uint64
	// Mapping is what is mapped there. It is the zero Mapping if that is
	// unknown.
	Mapping Mapping
	// Lines are the functions that are active there, the innermost first: each
	// is inlined into the next one. It is empty if none is known.
	Lines []Line
}

// Name is the outermost function of a location, or what else is known.
func (l *Location) Name() string {
	if n := len(l.Lines); n > 0 {
		return l.Lines[n-1].Function
	}
	return sites.Frame{Addr: l.Addr, Place: sites.Place{Module: l.Mapping.Path}}.String()
}

// Sample is what was allocated from a stack.
type Sample struct {
	// Stack holds the locations, the innermost first, as indexes of
	// Profile.Locations.
	Stack []int
	Label
	usage.Usage
}

// Label tells apart what is allocated from the same stack. Parts that are not
// told apart are zero.
type Label struct {
	PID      int32
	TID      int32
	Thread   uint64 // Call.Thread
	Function string // that allocated: Call.Function
}

// Options of a Builder.
type Options struct {
	// Locate appends the locations of a call's stack, the innermost first. It
	// is called once for each different stack as long as no mappings change.
	Locate func(dst []Location, r *trace.Record) []Location
	// Count says whether a block counts; nil means all. Others are followed,
	// so that their frees are known.
	Count func(r *trace.Record) bool
	// Threads and Functions tell samples apart by them.
	Threads, Functions bool
}

// Builder takes the records of a trace.
type Builder struct {
	options   Options
	counter   *usage.Counter
	memo      sites.Memo
	names     sites.Names // of functions that allocate
	locations []Location
	byLocated map[string]int
	stacks    [][]int
	byStack   map[string]int
	samples   []sample
	bySample  map[sample]int
	latest    sample // of the last call
	number    int    // of latest

	frames []Location
	key    []byte
}

// sample is what tells a Sample apart.
type sample struct {
	stack    int
	pid, tid int32
	thread   uint64
	function uint32 // in names; 0 if functions are not told apart
}

// NewBuilder returns a Builder of an empty profile.
func NewBuilder(o Options) *Builder {
	b := &Builder{
		options: o, byLocated: make(map[string]int), byStack: make(map[string]int),
		bySample: make(map[sample]int), number: -1,
	}
	b.counter = usage.New(b.find)
	return b
}

// Add takes a record. It keeps nothing that r refers to.
func (b *Builder) Add(r *trace.Record) {
	b.memo.Observe(r)
	b.counter.Add(r)
}

// Counter is what was counted.
func (b *Builder) Counter() *usage.Counter { return b.counter }

// find returns the number of the sample that a call belongs to.
func (b *Builder) find(r *trace.Record) int {
	if b.options.Count != nil && !b.options.Count(r) {
		return usage.None
	}
	s := sample{stack: b.memo.Number(r, b.stack)}
	if b.options.Threads {
		s.pid, s.tid, s.thread = r.PID, r.TID, r.Call.Thread
	}
	if b.options.Functions {
		s.function = b.names.Add(r.Call.Function)
	}
	if b.number >= 0 && s == b.latest {
		return b.number
	}
	n, ok := b.bySample[s]
	if !ok {
		n = len(b.samples)
		b.samples = append(b.samples, s)
		b.bySample[s] = n
	}
	b.latest, b.number = s, n
	return n
}

// stack returns the number of the stack of a call, after a look at what is
// mapped now.
func (b *Builder) stack(r *trace.Record) int {
	b.frames = b.options.Locate(b.frames[:0], r)
	numbers := make([]int, len(b.frames))
	key := make([]byte, 0, 4*len(b.frames))
	for i := range b.frames {
		numbers[i] = b.location(&b.frames[i])
		key = binary.AppendUvarint(key, uint64(numbers[i]))
	}
	n, ok := b.byStack[string(key)]
	if !ok {
		n = len(b.stacks)
		b.stacks = append(b.stacks, numbers)
		b.byStack[string(key)] = n
	}
	return n
}

// location returns the number of a location. Lines are kept as they are.
func (b *Builder) location(l *Location) int {
	b.key = l.appendKey(b.key[:0])
	if n, ok := b.byLocated[string(b.key)]; ok {
		return n
	}
	kept := *l
	kept.Lines = slices.Clone(l.Lines)
	n := len(b.locations)
	b.locations = append(b.locations, kept)
	b.byLocated[string(b.key)] = n
	return n
}

// appendKey appends bytes that are the same for equal locations only.
func (l *Location) appendKey(key []byte) []byte {
	m := &l.Mapping
	for _, n := range [...]uint64{l.Addr, m.Start, m.End, m.Offset} {
		key = binary.LittleEndian.AppendUint64(key, n)
	}
	key = appendText(appendText(key, m.Path), m.BuildID)
	placed := byte(0)
	if m.Placed {
		placed = 1
	}
	key = append(key, placed)
	for i := range l.Lines {
		line := &l.Lines[i]
		key = binary.LittleEndian.AppendUint64(key, line.Line)
		key = appendText(appendText(appendText(key, line.Function), line.System), line.File)
	}
	return key
}

func appendText(key []byte, s string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}
