package pageflags

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"rtrace-bpf/internal/linux/proc"
)

// ErrGone reports that a process has no memory any more.
var ErrGone = errors.New("the process has ended")

// MaxSize is the most bytes that are written for the pages: it covers 700 GB of memory.
const MaxSize = 4 << 30

// Bits of a page's record.
const (
	infoSwapped = 1 << iota
	infoPresent
	infoZero
)

// Bits of an entry of /proc/PID/pagemap.
const (
	entryPresent = 1 << 63
	entrySwapped = 1 << 62
	entryFrame   = 1<<55 - 1
)

// batch is how many pages are read together.
const batch = 512

// Process is a process whose pages are read.
type Process struct {
	page               uint64 // bytes
	word               int    // size of a pointer of the process in bytes
	maps               *os.File
	memory, pagemap    *os.File
	kpageflags, kcount *os.File

	entries, flags, counts []byte
	data                   []byte
}

// Open checks that the pages of a process can be read. The caller must close the result.
func Open(pid int) (*Process, error) {
	head, err := proc.ProgramHead(pid)
	if err != nil {
		return nil, fmt.Errorf("read pages: %w", err)
	}
	p := &Process{
		page: uint64(os.Getpagesize()), word: head.Bits / 8,
		entries: make([]byte, 8*batch), flags: make([]byte, 8*batch), counts: make([]byte, 8*batch),
	}
	p.data = make([]byte, p.page)
	for _, f := range []struct {
		to   **os.File
		path string
	}{
		{&p.kpageflags, "/proc/kpageflags"},
		{&p.kcount, "/proc/kpagecount"},
		{&p.maps, fmt.Sprintf("/proc/%d/maps", pid)},
		{&p.memory, fmt.Sprintf("/proc/%d/mem", pid)},
		{&p.pagemap, fmt.Sprintf("/proc/%d/pagemap", pid)},
	} {
		var err error
		if *f.to, err = os.Open(f.path); err != nil {
			p.Close()
			return nil, fmt.Errorf("read pages: %w", err)
		}
	}
	// Without CAP_SYS_ADMIN the kernel hides the numbers of frames.
	if err := p.checkFrames(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// checkFrames returns an error if the flags of pages cannot be read.
func (p *Process) checkFrames() error {
	if _, err := p.kpageflags.ReadAt(p.flags[:8], 0); err != nil {
		return fmt.Errorf("read pages: %w", err)
	}
	own, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return fmt.Errorf("read pages: %w", err)
	}
	defer own.Close()
	maps, err := proc.Maps(os.Getpid())
	if err != nil {
		return fmt.Errorf("read pages: %w", err)
	}
	for _, m := range maps {
		if m.Perms&proc.Exec == 0 || !m.File() {
			continue
		}
		n, err := own.ReadAt(p.entries, int64(m.Start/p.page*8))
		for ; n >= 8; n -= 8 {
			if e := binary.NativeEndian.Uint64(p.entries[n-8:]); e&entryPresent != 0 && e&entryFrame != 0 {
				return nil
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read pages: %w", err)
		}
	}
	return errors.New("read pages: the kernel shows their frames only with CAP_SYS_ADMIN")
}

// Close closes the files of the process.
func (p *Process) Close() {
	for _, f := range []*os.File{p.kpageflags, p.kcount, p.maps, p.memory, p.pagemap} {
		if f != nil {
			f.Close()
		}
	}
}

// Write writes both files. It leaves out areas that would make the second one larger than limit
// bytes or MaxSize, and returns how many it left out.
func (p *Process) Write(maps, flags io.Writer, limit int64) (left int, err error) {
	if _, err := p.maps.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(p.maps)
	if err != nil || len(text) == 0 {
		return 0, errors.Join(ErrGone, err)
	}
	areas, err := proc.ParseMaps(bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("read mappings: %w", err)
	}
	if _, err := maps.Write(text); err != nil {
		return 0, err
	}
	limit = min(limit, MaxSize) - int64(len(text))
	w := bufio.NewWriterSize(flags, 64<<10)
	for _, m := range areas {
		pages := (m.End - m.Start) / p.page
		size := pages * uint64(p.recordSize())
		if m.Path == "[vsyscall]" { // it belongs to the kernel, at a fixed address
			continue
		}
		if size > uint64(max(limit, 0)) {
			left++
			continue
		}
		limit -= int64(size) + int64(p.headSize())
		if err := p.area(w, &m, uint32(size)); err != nil {
			return left, err
		}
	}
	return left, w.Flush()
}

// headSize and recordSize are the sizes of the structs that the original writes from within the
// process: {from, to unsigned long; size unsigned} and {info unsigned; flags uint64; count
// unsigned}, with the padding of x86-64, arm64 and i386.
func (p *Process) headSize() int {
	if p.word == 8 {
		return 24
	}
	return 12
}

func (p *Process) recordSize() int {
	if p.word == 8 {
		return 24
	}
	return 16
}

// area writes the header of an area and a record for each page.
func (p *Process) area(w io.Writer, m *proc.Map, size uint32) error {
	var b []byte
	if p.word == 8 {
		b = binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(b, m.Start), m.End)
		b = binary.NativeEndian.AppendUint32(b, size)
		b = append(b, 0, 0, 0, 0)
	} else {
		b = binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(b, uint32(m.Start)), uint32(m.End))
		b = binary.NativeEndian.AppendUint32(b, size)
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	for at := m.Start; at < m.End; at += batch * p.page {
		n := int(min(batch, (m.End-at)/p.page))
		if err := p.pages(w, m, at, n); err != nil {
			return err
		}
	}
	return nil
}

// pages writes the records of n pages that start at an address.
func (p *Process) pages(w io.Writer, m *proc.Map, at uint64, n int) error {
	got, _ := p.pagemap.ReadAt(p.entries[:8*n], int64(at/p.page*8))
	clear(p.entries[got:]) // what is not mapped any more has no entry
	clear(p.flags)
	clear(p.counts)
	if err := p.frames(n); err != nil {
		return err
	}
	looks := m.Perms == proc.Read|proc.Write
	b := make([]byte, 0, n*p.recordSize())
	for i := range n {
		e := entryAt(p.entries, i)
		info := uint32(0)
		switch {
		case e&entrySwapped != 0:
			info = infoSwapped
		case e&entryPresent != 0:
			info = infoPresent
			if looks && p.isZero(at+uint64(i)*p.page) {
				info |= infoZero
			}
		case looks && m.Inode == 0: // such a page was never written
			info = infoZero
		}
		b = binary.NativeEndian.AppendUint32(b, info)
		if p.word == 8 {
			b = append(b, 0, 0, 0, 0)
		}
		b = append(b, p.flags[8*i:8*i+8]...)
		b = binary.NativeEndian.AppendUint32(b, uint32(entryAt(p.counts, i)))
		if p.word == 8 {
			b = append(b, 0, 0, 0, 0)
		}
	}
	_, err := w.Write(b)
	return err
}

func entryAt(b []byte, i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }

// frames reads the flags and counts of the frames of n pages, adjacent frames at once.
func (p *Process) frames(n int) error {
	frame := func(i int) (uint64, bool) {
		e := entryAt(p.entries, i)
		return e & entryFrame, e&entryPresent != 0
	}
	for i := 0; i < n; {
		first, ok := frame(i)
		j := i + 1
		for ; ok && j < n; j++ {
			if next, there := frame(j); !there || next != first+uint64(j-i) {
				break
			}
		}
		if ok {
			if _, err := p.kpageflags.ReadAt(p.flags[8*i:8*j], int64(first*8)); err != nil {
				return fmt.Errorf("read flags of pages: %w", err)
			}
			if _, err := p.kcount.ReadAt(p.counts[8*i:8*j], int64(first*8)); err != nil {
				return fmt.Errorf("read counts of pages: %w", err)
			}
		}
		i = j
	}
	return nil
}

// isZero reports whether all bytes of a page are 0. It is called only for resident pages,
// because reading others would make them resident.
func (p *Process) isZero(at uint64) bool {
	if _, err := p.memory.ReadAt(p.data, int64(at)); err != nil {
		return false
	}
	for _, b := range p.data {
		if b != 0 {
			return false
		}
	}
	return true
}
