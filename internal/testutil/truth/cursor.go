package truth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// cursor reads the entries of one thread, block by block.
type cursor struct {
	log   *Log
	tid   int32
	left  []int64 // offsets of blocks
	rest  []byte  // of a block
	index int     // of the next entry
	entry Entry
}

func (l *Log) cursor(tid int32) *cursor { return &cursor{log: l, tid: tid, left: l.threads[tid]} }

func (c *cursor) word(i int) uint64 { return binary.NativeEndian.Uint64(c.rest[8*i:]) }

// next returns the next entry, or nil after the last one. The entry is valid until the next
// call.
func (c *cursor) next() (*Entry, error) {
	for len(c.rest) < 8*entryWords {
		if c.rest = nil; len(c.left) == 0 {
			return nil, nil
		}
		if err := c.load(c.left[0]); err != nil {
			return nil, err
		}
		c.left = c.left[1:]
	}
	head := c.word(0)
	state, function, frames := head&0xff, head>>8&0xff, int(head>>16)
	if state > 2 || function >= uint64(len(Functions)) || 8*(entryWords+frames) > len(c.rest) {
		return nil, fmt.Errorf("%s: thread %d, entry %d begins with %#x", c.log.path, c.tid, c.index, head)
	}
	e := &c.entry
	*e = Entry{
		Function: Functions[function], Canonical: c.log.names[function], Done: state == 2,
		Old: c.word(1), Made: c.word(2), Size: c.word(3), Begin: int64(c.word(4)), End: int64(c.word(5)),
		Frames: e.Frames[:0],
	}
	for i := range frames {
		e.Frames = append(e.Frames, c.word(entryWords+i))
	}
	c.rest = c.rest[8*(entryWords+frames):]
	c.index++
	return e, nil
}

// load reads the block at offset. It keeps only the used part, because there may be thousands
// of threads with a few entries each.
func (c *cursor) load(offset int64) error {
	f, err := os.Open(c.log.path)
	if err != nil {
		return err
	}
	defer f.Close()
	var block [blockBytes]byte
	n, err := f.ReadAt(block[:], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the log of thread %d: %w", c.tid, err)
	}
	c.rest = block[min(8, n):n] // the thread's ID comes first
	used := 0
	for used+8 <= len(c.rest) {
		head := binary.NativeEndian.Uint64(c.rest[used:])
		if head == 0 {
			break
		}
		used += 8 * (entryWords + int(head>>16&0xffff))
	}
	c.rest = bytes.Clone(c.rest[:min(used, len(c.rest))])
	return nil
}
