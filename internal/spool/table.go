package spool

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// A reference to a text or stack is a number: 0 for the empty one, then the
// entries of the table in the order in which they were added, then refNew for a
// new one that joins the table, then refInline for a new one that does not
// because the table is full.
const (
	refNew    = 1 // after the last entry of the table
	refInline = 2
)

// tableBytes bounds the size of a table. Writer and reader have one each.
const tableBytes = 16 << 20

// overhead is the approximate cost of an entry in addition to its text or
// frames, in bytes.
const overhead = 96

// table holds the entries that references point to. Entries that do not fit are
// written out each time. The writer decides which.
type table struct {
	left   int // free bytes
	texts  []string
	stacks []trace.Stack // frames and names belong to the table
	frames []uint64      // memory for the frames of the next stacks
}

// hold copies s into the table. Its reason must be a text of the table.
func (t *table) hold(s *trace.Stack) {
	held := *s
	if n := len(s.Frames); n > 0 {
		if n > cap(t.frames)-len(t.frames) {
			t.frames = make([]uint64, 0, max(n, 4096))
		}
		from := len(t.frames)
		t.frames = append(t.frames, s.Frames...)
		held.Frames = t.frames[from:len(t.frames):len(t.frames)]
	} else {
		held.Frames = nil
	}
	held.Names = nil
	for _, name := range s.Names {
		held.Names = append(held.Names, strings.Clone(name))
	}
	t.stacks = append(t.stacks, held)
}

// costOf returns the size of a stack in the table, in bytes.
func costOf(s *trace.Stack) int {
	n := overhead + 8*len(s.Frames)
	for _, name := range s.Names {
		n += 16 + len(name)
	}
	return n
}

// index finds the references of texts and stacks that were written before.
type index struct {
	table
	numbers map[string]int // references of texts
	recent  [64]recent     // a cache of numbers' entries

	seed   [4]uint64 // random, so that input cannot be crafted to collide
	hashes []uint64  // hashes of stacks, by number
	slots  []uint32  // open addressing: number + 1, 0 for none; a power of two
}

type recent struct {
	text   string
	number int
}

func newIndex(bytes int) *index {
	x := &index{table: table{left: bytes}, numbers: map[string]int{}, slots: make([]uint32, 1024)}
	for i := range x.seed {
		x.seed[i] = rand.Uint64() | 1
	}
	return x
}

// text returns the reference to a text, which must not be empty, and whether
// the text must be written out.
func (x *index) text(s string) (ref int, out bool) {
	c := &x.recent[(len(s)<<3^int(s[0])^int(s[len(s)-1])<<1)%len(x.recent)]
	if c.text == s {
		return c.number, false
	}
	if n, ok := x.numbers[s]; ok {
		*c = recent{x.texts[n-1], n}
		return n, false
	}
	ref = len(x.texts) + refNew
	if cost := len(s) + overhead; cost <= x.left {
		x.left -= cost
		s = strings.Clone(s)
		x.texts = append(x.texts, s)
		x.numbers[s] = ref
		return ref, true
	}
	return ref - refNew + refInline, true
}

// stack is like text, for stacks.
func (x *index) stack(s *trace.Stack) (ref int, out bool) {
	h := x.hash(s)
	mask := uint64(len(x.slots) - 1)
	at := h & mask
	for ; x.slots[at] != 0; at = (at + 1) & mask {
		n := x.slots[at] - 1
		if x.hashes[n] == h && same(&x.stacks[n], s) {
			return int(n) + 1, false
		}
	}
	ref = len(x.stacks) + refNew
	cost := costOf(s)
	if cost > x.left {
		return ref - refNew + refInline, true
	}
	x.left -= cost
	x.hold(s)
	x.stacks[ref-1].Reason = strings.Clone(s.Reason)
	x.hashes = append(x.hashes, h)
	x.slots[at] = uint32(ref)
	if 2*ref > len(x.slots) {
		x.grow()
	}
	return ref, true
}

func (x *index) grow() {
	x.slots = make([]uint32, 2*len(x.slots))
	mask := uint64(len(x.slots) - 1)
	for n, h := range x.hashes {
		at := h & mask
		for x.slots[at] != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = uint32(n) + 1
	}
}

func same(a, b *trace.Stack) bool {
	return a.End == b.End && a.FramePointer == b.FramePointer && slices.Equal(a.Frames, b.Frames) &&
		a.Reason == b.Reason && slices.Equal(a.Names, b.Names)
}

// hash returns a hash of the frames and the end. Stacks that differ only in
// other properties are rare.
func (x *index) hash(s *trace.Stack) uint64 {
	a, b := x.seed[0]^uint64(s.End), x.seed[1]^uint64(len(s.Frames))
	f := s.Frames
	for ; len(f) >= 4; f = f[4:] {
		hi, lo := bits.Mul64(f[0]^a, f[1]^x.seed[2])
		a = hi ^ lo
		hi, lo = bits.Mul64(f[2]^b, f[3]^x.seed[3])
		b = hi ^ lo
	}
	for _, v := range f {
		hi, lo := bits.Mul64(v^a, x.seed[2])
		a = hi ^ lo
	}
	hi, lo := bits.Mul64(a^x.seed[3], b^x.seed[2])
	return hi ^ lo
}
