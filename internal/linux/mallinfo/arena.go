package mallinfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"rtrace-bpf/trace"
)

// Reasons why the state cannot be read completely.
var (
	errChanged = errors.New("the heap changed while it was read")
	errLate    = errors.New("the heap has too many free blocks")
	errBroken  = errors.New("the heap is inconsistent")
)

// maxArenas is the most arenas that are read: the library makes eight per processor.
const maxArenas = 1 << 14

// Flags in a block's size.
const (
	flagMapped = 2
	flags      = 7
)

// reader reads the state of malloc from the memory of a process.
type reader struct {
	memory            io.ReaderAt
	layout            layout
	arena, parameters uint64 // addresses of the variables
	deadline          time.Time
	since             uint // blocks since the deadline was checked
}

// arenas is what is compared to detect changes of the heap: copies of all arenas and the
// parameters.
type arenas struct {
	at   []uint64
	data [][]byte
}

// equal reports whether two readings are the same.
func (a *arenas) equal(b *arenas) bool {
	return slices.Equal(a.at, b.at) && slices.EqualFunc(a.data, b.data, bytes.Equal)
}

// read returns the values of mallinfo2, without the bounds of the heap. The counts of free
// blocks are right only if the process did not use its heap in the meantime; otherwise read
// returns errChanged. With errChanged and errLate, the result still holds what the arenas
// themselves contain.
func (r *reader) read() (trace.HeapInfo, error) {
	before, err := r.snapshot()
	if err != nil {
		return trace.HeapInfo{}, err
	}
	var info trace.HeapInfo
	for i := range before.at {
		info.Arena += r.wordOf(before.data[i], r.layout.systemMem)
	}
	parameters := before.data[len(before.at)]
	info.HBlks = uint64(binary.LittleEndian.Uint32(parameters[r.layout.mmaps:]))
	info.HBlkHd = r.wordOf(parameters, r.layout.mmappedMem)
	top, err := r.chunk(r.wordOf(before.data[0], r.layout.top))
	if err != nil {
		return trace.HeapInfo{}, err
	}
	info.KeepCost = top.size
	lists := info
	for i, at := range before.at {
		if err = r.addLists(at, before.data[i], &lists); err != nil {
			break
		}
	}
	if errors.Is(err, errLate) {
		return info, err
	}
	after, e := r.snapshot()
	switch {
	case e != nil:
		return trace.HeapInfo{}, e
	case !before.equal(after):
		return info, errChanged
	case err != nil:
		return info, err
	}
	lists.UordBlks = lists.Arena - lists.FordBlks
	return lists, nil
}

// snapshot copies all arenas and the parameters.
func (r *reader) snapshot() (*arenas, error) {
	arenaSize, parameterSize := r.layout.sizes()
	all := &arenas{}
	for at := r.arena; ; {
		b, err := r.bytes(at, arenaSize)
		if err != nil {
			return nil, err
		}
		all.at, all.data = append(all.at, at), append(all.data, b)
		if at = r.wordOf(b, r.layout.next); at == r.arena {
			break
		}
		if len(all.at) == maxArenas {
			return nil, errBroken
		}
	}
	b, err := r.bytes(r.parameters, parameterSize)
	if err != nil {
		return nil, err
	}
	all.data = append(all.data, b)
	return all, nil
}

// addLists adds an arena's free blocks, like int_mallinfo: those of the fast bins, the top and
// those of the other bins.
func (r *reader) addLists(at uint64, b []byte, info *trace.HeapInfo) error {
	top, err := r.chunk(r.wordOf(b, r.layout.top))
	if err != nil {
		return err
	}
	info.OrdBlks++
	info.FordBlks += top.size
	w := r.layout.word
	for field := r.layout.fastBins; field < r.layout.fastBinsEnd; field += w {
		if err := r.addFast(r.wordOf(b, field), info); err != nil {
			return err
		}
	}
	for field := r.layout.bins; field < r.layout.binsEnd; field += 2 * w {
		// The head of the list is a block whose links are these two fields.
		head := at + field - 2*w
		for p := r.wordOf(b, field+w); p != head; {
			c, err := r.chunk(p)
			if err != nil {
				return err
			}
			info.OrdBlks++
			info.FordBlks += c.size
			p = c.back
		}
	}
	return nil
}

// addFast adds the blocks of a fast bin. Since glibc 2.32, links to the next block are combined
// with their own address.
func (r *reader) addFast(p uint64, info *trace.HeapInfo) error {
	const shift = 12
	for p != 0 {
		c, err := r.chunk(p)
		if err != nil {
			return err
		}
		info.SmBlks++
		info.FsmBlks += c.size
		info.FordBlks += c.size
		mixed := c.forward ^ (p+2*r.layout.word)>>shift
		switch {
		case r.isBlock(mixed):
			p = mixed
		case r.isBlock(c.forward):
			p = c.forward
		default:
			return fmt.Errorf("block at %#x: %w", p, errBroken)
		}
	}
	return nil
}

// isBlock reports whether a link can be right: it leads to a free block of the size of a fast
// bin, or is null.
func (r *reader) isBlock(p uint64) bool {
	const most = 1 << 12
	if p == 0 {
		return true
	}
	if p%(2*r.layout.word) != 0 {
		return false
	}
	c, err := r.chunk(p)
	return err == nil && c.size > 0 && c.size <= most
}

// chunk is a block in the library's terms.
type chunk struct{ before, head, size, forward, back uint64 }

// chunk reads the header of a block at p.
func (r *reader) chunk(p uint64) (chunk, error) {
	const often = 1 << 8
	if r.since++; r.since%often == 0 && time.Now().After(r.deadline) {
		return chunk{}, errLate
	}
	w := r.layout.word
	b, err := r.bytes(p, 4*w)
	if err != nil {
		return chunk{}, err
	}
	c := chunk{before: r.wordOf(b, 0), head: r.wordOf(b, w), forward: r.wordOf(b, 2*w), back: r.wordOf(b, 3*w)}
	c.size = c.head &^ flags
	return c, nil
}

// mapped returns the size of a block's own mapping in bytes, if it has one.
func (r *reader) mapped(block uint64) (size uint64, ok bool) {
	c, err := r.chunk(block - 2*r.layout.word)
	if err != nil || c.head&flagMapped == 0 {
		return 0, false
	}
	return c.before + c.size, true
}

// bytes reads n bytes of memory.
func (r *reader) bytes(at, n uint64) ([]byte, error) {
	b := make([]byte, n)
	if at > 1<<63-1 {
		return nil, fmt.Errorf("memory at %#x: %w", at, errBroken)
	}
	if _, err := r.memory.ReadAt(b, int64(at)); err != nil {
		return nil, fmt.Errorf("read memory at %#x: %w", at, err)
	}
	return b, nil
}

// wordOf returns a pointer or size. All traced machines are little-endian.
func (r *reader) wordOf(b []byte, at uint64) uint64 {
	if r.layout.word == 4 {
		return uint64(binary.LittleEndian.Uint32(b[at:]))
	}
	return binary.LittleEndian.Uint64(b[at:])
}
