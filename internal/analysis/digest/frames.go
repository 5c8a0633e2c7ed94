package digest

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

// frames names frames and assigns a number to each distinct one.
type frames struct {
	framer    sites.Framer
	module    func(pid int32, addr uint64) string // see Options
	observer  func(*trace.Record)                 // see Options
	generated func(pid int32) bool                // see Options

	all   []sites.Frame
	byKey map[string]uint32
	key   []byte

	version int // of the mappings

	made      []sites.Frame // scratch
	numbers   []uint32
	step      []uint32
	addresses []uint64
	texts     []string
}

// steps caches the frames at the addresses of a process while the mappings stay
// the same. Most addresses are in many stacks, and naming one takes much longer
// than a lookup. The zero steps is empty.
type steps struct {
	version int
	plain   map[uint64]uint32 // index in frames, by address
	named   map[namedStep]uint32
	frames  []uint32 // lists: the number of frames, followed by the frames
}

// namedStep is an address with a text in the trace.
type namedStep struct {
	addr uint64
	text string
}

// maxSteps bounds the number of cached addresses.
const maxSteps = 1 << 20

// at returns the list of frames at an index.
func (s *steps) at(i uint32) []uint32 {
	n := s.frames[i]
	return s.frames[i+1:][:n]
}

// add adds a list of frames and returns its index.
func (s *steps) add(frames []uint32) uint32 {
	i := uint32(len(s.frames))
	s.frames = append(append(s.frames, uint32(len(frames))), frames...)
	return i
}

func (s *frames) add(f *sites.Frame) uint32 {
	s.key = f.AppendKey(s.key[:0])
	if n, ok := s.byKey[string(s.key)]; ok {
		return n
	}
	if s.byKey == nil {
		s.byKey = make(map[string]uint32)
	}
	own := *f
	own.Function, own.File, own.Module, own.Position = strings.Clone(f.Function), strings.Clone(f.File), strings.Clone(f.Module), strings.Clone(f.Position)
	n := uint32(len(s.all))
	s.all = append(s.all, own)
	s.byKey[string(s.key)] = n
	return n
}

// name names the frames of a row.
func (s *frames) name(r *row) {
	p := r.process
	s.addresses, s.texts = s.addresses[:0], s.texts[:0]
	stack, caller := p.places.Place(r.place, &p.names, &s.addresses, &s.texts)
	numbers := s.numbers[:0]
	for i := range stack.Frames {
		for _, n := range s.stepOf(p, r.pid, &stack, i) {
			if last := len(numbers) - 1; last < 0 || numbers[last] != n || s.all[n].Function != Generated {
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) > 0 {
		numbers = slices.Delete(numbers, 0, s.framer.First(len(numbers), func(i int) *sites.Frame { return &s.all[numbers[i]] }))
	} else {
		s.made = append(s.made[:0], sites.Frame{Place: s.framer.Caller(&caller)})
		numbers = s.number(numbers, r.pid, s.made)
	}
	s.numbers = numbers
	r.stack, r.named = slices.Clone(numbers), true
}

// stepOf returns the numbers of the frames at one address of a stack.
func (s *frames) stepOf(p *process, pid int32, stack *trace.Stack, i int) []uint32 {
	k := &p.steps
	if k.plain == nil || k.version != s.version || len(k.plain)+len(k.named) >= maxSteps {
		*k = steps{version: s.version, plain: make(map[uint64]uint32), named: make(map[namedStep]uint32)}
	}
	addr, text := stack.Frames[i], ""
	if len(stack.Names) > 0 {
		text = stack.Names[i]
	}
	if text == "" {
		at, ok := k.plain[addr]
		if !ok {
			at = k.add(s.make(pid, stack, i))
			k.plain[addr] = at
		}
		return k.at(at)
	}
	key := namedStep{addr, text}
	at, ok := k.named[key]
	if !ok {
		at = k.add(s.make(pid, stack, i))
		k.named[key] = at
	}
	return k.at(at)
}

// make returns the frames at one address of a stack. They are valid until the
// next call.
func (s *frames) make(pid int32, stack *trace.Stack, i int) []uint32 {
	s.made = s.framer.Step(s.made[:0], pid, stack, i)
	s.step = s.number(s.step[:0], pid, s.made)
	return s.step
}

// number appends the numbers of frames. It looks up the modules that their
// texts lack.
func (s *frames) number(numbers []uint32, pid int32, made []sites.Frame) []uint32 {
	for i := range made {
		f := &made[i]
		if f.Module == "" && f.Addr != 0 && s.module != nil {
			f.Module = s.module(pid, f.Addr)
		}
		if s.inGenerated(pid, f) {
			*f = sites.Frame{Place: sites.Place{Function: Generated}}
		}
		if f.Function != "" {
			f.Addr = 0
		}
		numbers = append(numbers, s.add(f))
	}
	return numbers
}

// anonymous is the kernel's name of executable mappings of no file.
const anonymous = "//anon"

// inGenerated reports whether a frame is in generated code and has no name.
func (s *frames) inGenerated(pid int32, f *sites.Frame) bool {
	if f.Function != "" || f.File != "" || f.Addr == 0 || s.generated == nil {
		return false
	}
	return f.Module == anonymous || f.Module == "" && s.generated(pid)
}

// observe passes on a record that changes mappings.
func (s *frames) observe(r *trace.Record) {
	s.version++
	if s.observer != nil {
		s.observer(r)
	}
}

// stackIndex finds places by their stacks. Its hash is randomly seeded, so
// crafted input cannot cause collisions. The zero stackIndex is empty.
type stackIndex struct {
	seed   uint64
	byHash map[uint64]int // 1 + the last place with the hash
	before []int          // by place: 1 + the one before with the same hash
}

// find returns the index of the place with a stack. If there is none, it
// returns the length of places, where the caller must add it.
func (x *stackIndex) find(places []Place, stack []uint32) int {
	if x.byHash == nil {
		x.byHash, x.seed = make(map[uint64]int), rand.Uint64()
	}
	h := x.seed
	for _, n := range stack {
		hi, lo := bits.Mul64(h^uint64(n), 0x9e3779b97f4a7c15)
		h = hi ^ lo
	}
	for n := x.byHash[h]; n > 0; n = x.before[n-1] {
		if slices.Equal(places[n-1].Frames, stack) {
			return n - 1
		}
	}
	x.before = append(x.before, x.byHash[h])
	x.byHash[h] = len(x.before)
	return len(places)
}
