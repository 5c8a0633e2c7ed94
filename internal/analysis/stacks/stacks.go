// Package stacks sums up allocations by whole stacks, as profilers show them.
// Each stack is a list of locations in mapped files. A location has a line for
// the function there and one for each function that the compiler inlined into
// it.
//
// Memory grows with the live blocks, the distinct stacks and, if Options
// distinguish them, the threads and functions that allocate from each stack.
package stacks

import (
	"encoding/binary"
	"slices"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/trace"
)

// Line is a function and a source line in it. Unknown parts are zero.
type Line struct {
	Function string // name in the source
	System   string // linker symbol
	File     string
	Line     uint64 // counted from 1
}

// Mapping is a mapping at [Start, End).
type Mapping struct {
	Start, End uint64
	Offset     uint64 // in the file
	Placed     bool   // whether Offset is known
	Path       string
	BuildID    string // in hexadecimal; empty if unknown
}

// Location is a place in a stack.
type Location struct {
	// Addr is the return address, or 0 if only the name of the place is known.
	Addr uint64
	// Mapping is the mapping there. It is the zero Mapping if unknown.
	Mapping Mapping
	// Lines holds the functions that are active there, the innermost first:
	// each is inlined into the next one. It is empty if none is known.
	Lines []Line
}

// Name returns the outermost function of a location, or else its address and
// module.
func (l *Location) Name() string {
	if n := len(l.Lines); n > 0 {
		return l.Lines[n-1].Function
	}
	return sites.Frame{Addr: l.Addr, Place: sites.Place{Module: l.Mapping.Path}}.String()
}

// Sample is the allocations of one stack.
type Sample struct {
	// Stack holds the locations, the innermost first, as indexes into
	// Profile.Locations.
	Stack []int
	Label
	usage.Usage
	// Lived is the sum of the lifetimes of all blocks, in microseconds. Those
	// that are live or unknown lived until the last call.
	Lived uint64
}

// Label distinguishes samples with the same stack. Parts that Options do not
// distinguish are zero.
type Label struct {
	PID      int32
	TID      int32
	Thread   uint64 // Call.Thread
	Function string // the allocator's: Call.Function
}

// Options configure a Builder.
type Options struct {
	// Locate appends the locations of a call's stack, the innermost first. It
	// is called once for each distinct stack as long as no mappings change.
	Locate func(dst []Location, r *trace.Record) []Location
	// Count reports whether a block counts; nil means all. Other blocks are
	// followed, so that their frees are known.
	Count func(r *trace.Record) bool
	// Threads and Functions distinguish samples by thread and by function.
	Threads, Functions bool
}

// Builder builds a Profile from the records of a trace.
type Builder struct {
	options   Options
	counter   *usage.Counter
	memo      sites.Memo
	names     sites.Names // of allocator functions
	locations []Location
	byLocated map[string]int
	stacks    [][]int
	byStack   map[string]int
	samples   []sample
	bySample  map[sample]int
	latest    sample // of the last call
	number    int    // of latest
	ages      ages
	estimates estimate.Groups // of the same samples

	frames []Location
	key    []byte
}

// sample identifies a Sample.
type sample struct {
	stack    int
	pid, tid int32
	thread   uint64
	function uint32 // in names; 0 if functions are not distinguished
}

// NewBuilder returns a Builder of an empty profile.
func NewBuilder(o Options) *Builder {
	b := &Builder{
		options: o, byLocated: make(map[string]int), byStack: make(map[string]int),
		bySample: make(map[sample]int), number: -1,
	}
	b.counter = usage.New(func(r *trace.Record) int {
		n := b.find(r)
		if n >= 0 {
			b.estimates.Add(n, r.Call.Size)
		}
		b.ages.began(n)
		return n
	})
	b.counter.OnEnd(b.ages.ended)
	return b
}

// Add processes a record. It keeps no reference to the contents of r.
func (b *Builder) Add(r *trace.Record) {
	b.memo.Observe(r)
	b.ages.observe(r)
	b.estimates.Record(r)
	b.counter.Add(r)
	b.ages.peaked(b.counter.Peaks())
}

// Counter returns the counter of all samples.
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

// stack returns the number of the stack of a call, located with the current
// mappings.
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

// location returns the number of a location. It copies Lines.
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

// appendKey appends bytes that are equal for equal locations only.
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
