package ring

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Record headers of a BPF ring buffer (include/uapi/linux/bpf.h).
const (
	headSize   = 8
	busyBit    = 1 << 31
	discardBit = 1 << 30
)

// publishEvery is how many bytes are read before their space is given back to the kernel. Each
// time costs a write to a page that the producers read.
const publishEvery = 64 << 10

// BPF is the consumer side of a BPF ring buffer (kernel 5.8).
type BPF struct {
	meta     []byte // consumer position, our page
	shared   []byte // producer position, then the data, mapped twice in a row
	consumer *atomic.Uint64
	producer *atomic.Uint64
	data     unsafe.Pointer
	mask     uint64

	pos       uint64 // next record
	end       uint64 // producer position at the last Begin
	published uint64
}

// NewBPF maps the ring buffer map with file descriptor fd and size bytes of data, a power of two.
// The caller keeps the descriptor.
func NewBPF(fd, size int) (*BPF, error) {
	page := os.Getpagesize()
	meta, err := unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map ring buffer consumer page: %w", err)
	}
	shared, err := unix.Mmap(fd, int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(meta)
		return nil, fmt.Errorf("map %d bytes of ring buffer: %w", size, err)
	}
	r := &BPF{
		meta:     meta,
		shared:   shared,
		consumer: (*atomic.Uint64)(unsafe.Pointer(&meta[0])),
		producer: (*atomic.Uint64)(unsafe.Pointer(&shared[0])),
		data:     unsafe.Pointer(&shared[page]),
		mask:     uint64(size - 1),
	}
	r.pos = r.consumer.Load()
	r.published = r.pos
	return r, nil
}

// Begin reads the producers' position; Next reads up to there.
func (r *BPF) Begin() { r.end = r.producer.Load() }

// Next returns the next record, or nil if there is none or it is incomplete (see Caught). The
// bytes are valid until Release.
func (r *BPF) Next() []byte {
	for r.pos < r.end {
		at := unsafe.Add(r.data, r.pos&r.mask)
		head := (*atomic.Uint32)(at).Load()
		if head&busyBit != 0 {
			return nil
		}
		size := uint64(head &^ discardBit)
		r.pos += (size + headSize + 7) &^ 7
		if r.pos-r.published > publishEvery {
			// The caller has consumed everything before this record.
			r.publish(r.pos - (size+headSize+7)&^7)
		}
		if head&discardBit == 0 {
			return unsafe.Slice((*byte)(unsafe.Add(at, headSize)), size)
		}
	}
	return nil
}

// Caught reports whether Next has read everything up to End.
func (r *BPF) Caught() bool { return r.pos == r.end }

// Pos returns the position of the next record, in bytes since the ring was made.
func (r *BPF) Pos() uint64 { return r.pos }

// End returns the producers' position at the last Begin, in bytes since the ring was made.
func (r *BPF) End() uint64 { return r.end }

// Used returns the share of the ring that was filled at the last Begin.
func (r *BPF) Used() float64 {
	return float64(r.end-r.published) / float64(r.mask+1)
}

// Release gives the space of all records read so far back to the producers.
func (r *BPF) Release() {
	if r.pos != r.published {
		r.publish(r.pos)
	}
}

func (r *BPF) publish(pos uint64) {
	r.consumer.Store(pos)
	r.published = pos
}

// Close unmaps the buffer.
func (r *BPF) Close() error {
	err := unix.Munmap(r.meta)
	if e := unix.Munmap(r.shared); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("unmap ring buffer: %w", err)
	}
	return nil
}
