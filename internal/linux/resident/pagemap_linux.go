package resident

import (
	"encoding/binary"
	"fmt"
	"os"

	"rtrace-bpf/internal/linux/proc"
)

// maxRange is the largest range of addresses whose pages are read, in bytes: its bits take
// 96 MiB.
const maxRange = 1 << 40

// Pagemap reads pages of a process.
type Pagemap struct {
	pid  int
	file *os.File
	size uint64 // of a page
}

// OpenPagemap opens the pages of a process. The caller must close the result.
func OpenPagemap(pid int) (*Pagemap, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return nil, fmt.Errorf("open the pages of process %d: %w", pid, err)
	}
	return &Pagemap{pid: pid, file: f, size: uint64(os.Getpagesize())}, nil
}

// Close closes the file.
func (p *Pagemap) Close() error { return p.file.Close() }

// Read returns the pages of a mapping. The error wraps proc.ErrGone if the process has no memory
// any more.
func (p *Pagemap) Read(m *Mapping) (*Pages, error) {
	if m.End-m.Start > maxRange {
		return nil, fmt.Errorf("the mapping at %#x is larger than %d bytes", m.Start, uint64(maxRange))
	}
	const batch = 1 << 16
	n := (m.End - m.Start) / p.size
	pages := newPages(m.Start, m.End, p.size)
	b := make([]byte, 8*min(n, batch))
	for at := uint64(0); at < n; {
		part := b[:8*min(n-at, batch)]
		if k, err := p.file.ReadAt(part, int64(8*(m.Start/p.size+at))); k < len(part) {
			return nil, fmt.Errorf("pages of process %d: %w (%w)", p.pid, proc.ErrGone, err)
		}
		for ; len(part) > 0; part = part[8:] {
			pages.set(at, binary.NativeEndian.Uint64(part))
			at++
		}
	}
	pages.finish(m.Shared)
	return pages, nil
}
