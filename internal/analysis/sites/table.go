package sites

import (
	"math/bits"

	"rtrace-bpf/trace"
)

// Table numbers distinct places from 1. It stores each as a run of words: a
// head, the hash, the place's own number combined with that of its reason, the
// frames, the numbers of their texts if there are any, and the numbers of the
// caller's function and file and the line if there is a caller. Number 0 is the
// place of a call without stack and caller. The zero Table is empty.
type Table struct {
	words words
	at    []uint32 // the run in words, by number less 1
	index []uint32 // open addressing by hash: 1 + the run; 0 is empty
	known shortcuts
}

const (
	headWords  = 3
	headFP     = 1 << 40 // Stack.FramePointer
	headNamed  = 1 << 41
	headCaller = 1 << 42
	headEndAt  = 32 // Stack.End
	headLength = 1<<32 - 1
	numberAt   = 32 // shift of the number, above that of the reason

	callerWords = 3
	minIndex    = 1 << 4
)

// Len returns the number of places.
func (t *Table) Len() int { return len(t.at) }

// Words returns the size of the table, in words of 8 bytes.
func (t *Table) Words() int { return t.words.n }

// Add returns the number of the place with the given stack and caller. Their
// texts are numbered in names, which must be the same for all calls. When the
// table has reached 32 GiB, Add returns 0 for new places.
func (t *Table) Add(s *trace.Stack, caller *trace.Caller, names *Names) uint32 {
	if s.ID == 0 || len(s.Names) > 0 || caller.Line != 0 || caller.Function != "" || caller.File != "" {
		return t.add(s, caller, names)
	}
	if number := t.known.find(s.ID); number != 0 {
		return number
	}
	number := t.add(s, caller, names)
	t.known.set(s.ID, number, len(t.at))
	return number
}

// add does what Add does, without shortcuts.
func (t *Table) add(s *trace.Stack, caller *trace.Caller, names *Names) uint32 {
	head := uint64(len(s.Frames)) | uint64(s.End)<<headEndAt
	if s.FramePointer {
		head |= headFP
	}
	named := len(s.Names) > 0 && len(s.Names) == len(s.Frames)
	if named {
		head |= headNamed
	}
	h := head
	var call [callerWords]uint64
	if caller.Line != 0 || caller.Function != "" || caller.File != "" {
		head |= headCaller
		call = [...]uint64{uint64(names.Add(caller.Function)), uint64(names.Add(caller.File)), caller.Line}
		for _, w := range call {
			h = mix(h ^ w)
		}
	}
	var reason uint64
	if s.Reason != "" {
		reason = uint64(names.Add(s.Reason))
		h ^= reason << 44
	}
	if head == 0 && reason == 0 {
		return 0
	}
	h = mixFrames(h, s.Frames)
	if 2*len(t.at) >= len(t.index) {
		t.grow()
	}
	mask := uint64(len(t.index) - 1)
	i := h & mask
	for ; t.index[i] != 0; i = (i + 1) & mask {
		w := t.words.from(t.index[i] - 1)
		if w[1] == h && w[0] == head && uint32(w[2]) == uint32(reason) && equal(w[headWords:], s, named, &call, names) {
			return uint32(w[2] >> numberAt)
		}
	}
	if t.words.full() {
		return 0
	}
	length := headWords + len(s.Frames)
	if named {
		length += len(s.Names)
	}
	if head&headCaller != 0 {
		length += callerWords
	}
	at, w := t.words.add(length)
	t.index[i] = at + 1
	t.at = append(t.at, at)
	number := uint32(len(t.at))
	w[0], w[1], w[2] = head, h, reason|uint64(number)<<numberAt
	n := headWords + copy(w[headWords:], s.Frames)
	if named {
		for _, name := range s.Names {
			w[n] = uint64(names.Add(name))
			n++
		}
	}
	if head&headCaller != 0 {
		copy(w[n:], call[:])
	}
	return number
}

// equal reports whether the words after a head describe a given place, whose
// head is the same.
func equal(w []uint64, s *trace.Stack, named bool, call *[callerWords]uint64, names *Names) bool {
	if !equalFrames(w[:len(s.Frames)], s.Frames) {
		return false
	}
	w = w[len(s.Frames):]
	if named {
		for i, name := range s.Names {
			if names.Text(uint32(w[i])) != name {
				return false
			}
		}
		w = w[len(s.Frames):]
	}
	return call[0] == 0 || [callerWords]uint64(w) == *call
}

// equalFrames reports whether lists of the same length are equal. Eight frames at a time
// are compared without a loop.
func equalFrames(a, b []uint64) bool {
	for len(a) >= 8 && len(b) >= 8 {
		if *(*[8]uint64)(a) != *(*[8]uint64)(b) {
			return false
		}
		a, b = a[8:], b[8:]
	}
	for i, f := range a {
		if b[i] != f {
			return false
		}
	}
	return true
}

// Place returns the stack and the caller of a place. Frames and texts are
// appended to the given slices.
func (t *Table) Place(number uint32, names *Names, frames *[]uint64, texts *[]string) (trace.Stack, trace.Caller) {
	if number == 0 {
		return trace.Stack{}, trace.Caller{}
	}
	w := t.words.from(t.at[number-1])
	head := w[0]
	n := head & headLength
	s := trace.Stack{
		End:          trace.StackEnd(head >> headEndAt),
		FramePointer: head&headFP != 0,
	}
	if reason := uint32(w[2]); reason != 0 {
		s.Reason = names.Text(reason)
	}
	w = w[headWords:]
	*frames = append(*frames, w[:n]...)
	s.Frames = *frames
	w = w[n:]
	if head&headNamed != 0 {
		for _, id := range w[:n] {
			*texts = append(*texts, names.Text(uint32(id)))
		}
		s.Names = *texts
		w = w[n:]
	}
	var c trace.Caller
	if head&headCaller != 0 {
		c = trace.Caller{Function: names.Text(uint32(w[0])), File: names.Text(uint32(w[1])), Line: w[2]}
	}
	return s, c
}

// Frames returns the frames of a place. They belong to the table and are valid
// until the next Add.
func (t *Table) Frames(number uint32) []uint64 {
	if number == 0 {
		return nil
	}
	w := t.words.from(t.at[number-1])
	return w[headWords : headWords+w[0]&headLength]
}

// grow doubles the index.
func (t *Table) grow() {
	t.index = make([]uint32, max(minIndex, 2*len(t.index)))
	mask := uint64(len(t.index) - 1)
	for _, at := range t.at {
		i := t.words.from(at)[1] & mask
		for ; t.index[i] != 0; i = (i + 1) & mask {
		}
		t.index[i] = at + 1
	}
}

// HashFrames returns a hash of frames and their order.
func HashFrames(frames []uint64) uint64 { return mixFrames(uint64(len(frames)), frames) }

// mixFrames mixes pairs of frames independently, each with keys for its
// position, so that no step waits for the one before.
func mixFrames(h uint64, frames []uint64) uint64 {
	key1, key2 := h^0xa0761d6478bd642f, uint64(0xe7037ed1a0b428db)
	for ; len(frames) >= 2; frames = frames[2:] {
		hi, lo := bits.Mul64(frames[0]^key1, frames[1]^key2)
		h += hi ^ lo
		key1 += 0x9e3779b97f4a7c15
		key2 += 0x8ebc6af09c88c6e3
	}
	if len(frames) > 0 {
		h += mix(frames[0] ^ key1)
	}
	return mix(h)
}

func mix(v uint64) uint64 {
	hi, lo := bits.Mul64(v^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return hi ^ lo
}
