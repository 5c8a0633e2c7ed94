package nettrace

import "io"

// maxEmptyReads is how many times in a row a Read may return nothing.
const maxEmptyReads = 100

// chunk is how many bytes are read at once into a new buffer at most, so that a length
// in the input uses no more memory than there is input.
const chunk = 1 << 20

// input reads a stream from its beginning and counts bytes. What it returns is valid
// until the next call, except blocks, which have buffers of their own.
type input struct {
	r        io.Reader
	offset   int64 // bytes that were consumed
	err      error // why reading stopped; io.EOF at the end. ahead may still have bytes
	ahead    []byte
	window   [4096]byte     // ahead is a part of it
	free     [][]byte       // unused buffers
	consumed func(b []byte) // called with the bytes that are consumed; may be nil
}

// read reads at least least bytes into b, and returns how many it read. It never waits
// for more than those.
func (in *input) read(b []byte, least int) int {
	n, empty := 0, 0
	for n < least && in.err == nil {
		m, err := in.r.Read(b[n:])
		n += m
		in.err = err
		if empty++; m > 0 {
			empty = 0
		} else if err == nil && empty == maxEmptyReads {
			in.err = io.ErrNoProgress
		}
	}
	return n
}

// fill fills b and returns how many bytes it read. It reads small pieces together with
// the bytes that follow, because streams have many small blocks of many parts.
func (in *input) fill(b []byte) int {
	n := copy(b, in.ahead)
	in.ahead = in.ahead[n:]
	if rest := b[n:]; len(rest) >= len(in.window)/2 {
		n += in.read(rest, len(rest))
	} else if len(rest) > 0 {
		in.ahead = in.window[:in.read(in.window[:], len(rest))]
		more := copy(rest, in.ahead)
		in.ahead = in.ahead[more:]
		n += more
	}
	in.offset += int64(n)
	if in.consumed != nil {
		in.consumed(b[:n])
	}
	return n
}

// bytes returns the next n bytes, at most 64, or fewer at the end.
func (in *input) bytes(n int) []byte {
	if len(in.ahead) < n {
		kept := copy(in.window[:], in.ahead)
		in.ahead = in.window[:kept+in.read(in.window[kept:], n-kept)]
		n = min(n, len(in.ahead))
	}
	b := in.ahead[:n:n]
	in.ahead = in.ahead[n:]
	in.offset += int64(n)
	if in.consumed != nil {
		in.consumed(b)
	}
	return b
}

// block returns the next n bytes in a buffer of their own, or fewer at the end. Give
// the buffer back with release.
func (in *input) block(n int) []byte {
	b := in.buffer(n)
	for {
		size := min(n, max(cap(b), 2*len(b), chunk))
		if size > cap(b) {
			grown := make([]byte, len(b), size)
			copy(grown, b)
			b = grown
		}
		from := len(b)
		b = b[:size]
		got := in.fill(b[from:])
		if from+got < size || size == n {
			return b[:from+got]
		}
	}
}

// buffer returns an empty buffer, with room for n bytes if there is an unused one.
func (in *input) buffer(n int) []byte {
	last := len(in.free) - 1
	for i := last; i >= 0; i-- {
		if b := in.free[i]; cap(b) >= n {
			in.free[i] = in.free[last]
			in.free = in.free[:last]
			return b[:0]
		}
	}
	if n <= chunk {
		// With some more room, so that the buffer also fits other blocks of about the
		// same size. Large blocks differ little in size, as the runtime fills them.
		return make([]byte, 0, min(max(n+n/16+1<<10, 4<<10)&^1023, chunk))
	}
	return nil
}

// maxFree is how many unused buffers are kept.
const maxFree = 16

func (in *input) release(b []byte) {
	if len(in.free) < maxFree && cap(b) <= chunk {
		in.free = append(in.free, b)
	}
}

// skip discards n bytes, or fewer at the end.
func (in *input) skip(n int) int {
	b := in.buffer(min(n, 64<<10))
	b = b[:cap(b)]
	done := 0
	for done < n {
		got := in.fill(b[:min(len(b), n-done)])
		if done += got; got == 0 {
			break
		}
	}
	in.release(b)
	return done
}
