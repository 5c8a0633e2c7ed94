package replay

import "math"

// code is the operation of a word. The numbers are those of program/program.h.
type code uint64

const (
	codeEnd code = iota
	codeWait
	codeFree
	codeMalloc
	codeCalloc
	codeRealloc
	codeMemalign // this and the following have a word for the alignment
	codePosixMemalign
	codeAlignedAlloc
)

// The layout of a word and of the file; see the package's comment.
const (
	codeMask    = 1<<4 - 1
	signal      = 1 << 4
	numberShift = 5
	numberMask  = 1<<27 - 1
	valueShift  = 32
	wide        = math.MaxUint32

	fileMagic   = 0x79616c7065727472 // "rtreplay"
	fileVersion = 1
)

func word(c code, number uint32, value uint64) uint64 {
	return uint64(c) | uint64(number)<<numberShift | value<<valueShift
}

func codeOf(w uint64) code     { return code(w & codeMask) }
func numberOf(w uint64) uint32 { return uint32(w >> numberShift & numberMask) }

// extras returns the number of words after w that belong to it.
func extras(w uint64) int {
	c, n := codeOf(w), 0
	if c >= codeFree && w>>valueShift == wide {
		n++
	}
	if c >= codeMemalign {
		n++
	}
	return n
}

// chunkWords is the binary logarithm of the number of words in a chunk of a
// stream.
const chunkWords = 13

// stream is a growing list of words in chunks, so that growing copies little.
type stream struct {
	chunks [][]uint64
	n      uint64
}

func (s *stream) add(w uint64) {
	at := len(s.chunks) - 1
	if at < 0 || len(s.chunks[at]) == 1<<chunkWords {
		var next []uint64
		if at++; at > 0 { // the first chunk grows: most threads make few calls
			next = make([]uint64, 0, 1<<chunkWords)
		}
		s.chunks = append(s.chunks, next)
	}
	s.chunks[at] = append(s.chunks[at], w)
	s.n++
}

// mark records that other threads wait for word i.
func (s *stream) mark(i uint32) { s.chunks[i>>chunkWords][i&(1<<chunkWords-1)] |= signal }
