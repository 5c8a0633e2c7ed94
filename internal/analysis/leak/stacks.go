package leak

import (
	"math/bits"

	"rtrace-bpf/trace"
)

// stacks holds each different stack once, in an array of words: a head, the
// hash, the number of the reason, the frames, and the numbers of their names if
// there are any. A stack is known by the place of its head plus 1; 0 is the
// empty stack of a call without one.
type stacks struct {
	words []uint64
	index []uint32 // open addressing by hash; 0 is empty
	n     int
	limit int // words
}

const (
	headWords  = 3
	headFP     = 1 << 40 // Stack.FramePointer
	headNamed  = 1 << 41
	headEndAt  = 32 // Stack.End
	headLength = 1<<32 - 1

	minStackWords = 1 << 18 // kept without a look at whether they are used
	minIndex      = 1 << 10
)

func (t *stacks) full() bool { return len(t.words) > max(t.limit, minStackWords) }

// settle sets the limit after what is unused was dropped; calls is how many
// calls that took a look at.
func (t *stacks) settle(calls uint32) { t.limit = max(2*len(t.words), int(calls)) }

// add returns the number of a stack.
func (t *stacks) add(s *trace.Stack, texts *names) uint32 {
	if len(s.Frames) == 0 && s.End == trace.StackAbsent && !s.FramePointer && s.Reason == "" {
		return 0
	}
	head := uint64(len(s.Frames)) | uint64(s.End)<<headEndAt
	if s.FramePointer {
		head |= headFP
	}
	named := len(s.Names) > 0 && len(s.Names) == len(s.Frames)
	if named {
		head |= headNamed
	}
	var reason uint64
	if s.Reason != "" {
		reason = uint64(texts.add(s.Reason))
	}
	h := head ^ reason<<44
	for _, f := range s.Frames {
		h = mix(h ^ f)
	}
	h = mix(h)
	if 2*t.n >= len(t.index) {
		t.grow()
	}
	mask := uint64(len(t.index) - 1)
	i := h & mask
	for ; t.index[i] != 0; i = (i + 1) & mask {
		if at := t.index[i] - 1; t.words[at+1] == h && t.equal(at, head, reason, s, named, texts) {
			return at + 1
		}
	}
	if len(t.words) >= 1<<32-1 {
		return 0 // 32 GiB of different stacks: do without
	}
	at := uint32(len(t.words))
	t.words = append(t.words, head, h, reason)
	t.words = append(t.words, s.Frames...)
	if named {
		for _, name := range s.Names {
			t.words = append(t.words, uint64(texts.add(name)))
		}
	}
	t.index[i] = at + 1
	t.n++
	return at + 1
}

func (t *stacks) equal(at uint32, head, reason uint64, s *trace.Stack, named bool, texts *names) bool {
	w := t.words[at:]
	if w[0] != head || w[2] != reason {
		return false
	}
	w = w[headWords:]
	for i, f := range s.Frames {
		if w[i] != f {
			return false
		}
	}
	if named {
		w = w[len(s.Frames):]
		for i, name := range s.Names {
			if texts.text(uint32(w[i])) != name {
				return false
			}
		}
	}
	return true
}

// stack returns a stack whose frames and names are appended to the given slices.
func (t *stacks) stack(number uint32, texts *names, frames *[]uint64, out *[]string) trace.Stack {
	if number == 0 {
		return trace.Stack{}
	}
	w := t.words[number-1:]
	head := w[0]
	n := head & headLength
	s := trace.Stack{
		End:          trace.StackEnd(head >> headEndAt),
		FramePointer: head&headFP != 0,
	}
	if w[2] != 0 {
		s.Reason = texts.text(uint32(w[2]))
	}
	*frames = append(*frames, w[headWords:headWords+n]...)
	s.Frames = *frames
	if head&headNamed != 0 {
		for _, id := range w[headWords+n : headWords+2*n] {
			*out = append(*out, texts.text(uint32(id)))
		}
		s.Names = *out
	}
	return s
}

func (t *stacks) grow() {
	t.index = make([]uint32, max(minIndex, 2*len(t.index)))
	mask := uint64(len(t.index) - 1)
	for at := 0; at < len(t.words); {
		w := t.words[at:]
		i := w[1] & mask
		for ; t.index[i] != 0; i = (i + 1) & mask {
		}
		t.index[i] = uint32(at) + 1
		n := int(w[0] & headLength)
		at += headWords + n
		if w[0]&headNamed != 0 {
			at += n
		}
	}
}

func mix(v uint64) uint64 {
	hi, lo := bits.Mul64(v^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return hi ^ lo
}
