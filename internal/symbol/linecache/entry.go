package linecache

import (
	"errors"
	"os"
	"slices"
	"time"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// Entry holds the answers for one ELF file. Its methods do nothing if it is nil.
type Entry struct {
	cache     *Cache
	key, path string
	consulted []symbol.Consulted
	frames    []lines.Frame
	numbers   map[lines.Frame]uint32
	lists     map[uint64][]uint32 // indexes of frames, by address
	added     bool
	void      bool // it must not be saved
}

func newEntry(c *Cache, key, path string) *Entry {
	e := &Entry{cache: c, key: key, path: path}
	e.clear()
	return e
}

func (e *Entry) clear() {
	e.consulted, e.frames, e.numbers, e.lists = nil, nil, make(map[lines.Frame]uint32), make(map[uint64][]uint32)
}

// read reads the entry's file. If it returns an error, the entry stays empty.
func (e *Entry) read() error {
	data, err := readFile(e.path)
	if err == nil {
		err = e.decode(data)
	}
	if err == nil && !unchanged(e.consulted) {
		err = errors.New("files were changed")
	}
	if err != nil {
		e.clear()
	}
	return err
}

// readFile reads a file whose size is within the limit.
func readFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, errFormat
	}
	return os.ReadFile(path)
}

// unchanged reports whether no file has changed since it was consulted.
func unchanged(files []symbol.Consulted) bool {
	return !slices.ContainsFunc(files, func(c symbol.Consulted) bool { return symbol.Consult(c.Name) != c })
}

// Append appends the frames of an address, the innermost function first. ok is false if the
// address is unknown.
func (e *Entry) Append(dst []lines.Frame, addr uint64) (frames []lines.Frame, ok bool) {
	if e == nil {
		return dst, false
	}
	list, ok := e.lists[addr]
	for _, n := range list {
		dst = append(dst, e.frames[n])
	}
	return dst, ok
}

// Add adds the answer for an address.
func (e *Entry) Add(addr uint64, frames []lines.Frame) {
	if e == nil || len(e.lists) >= maxLists || len(frames) > maxList {
		return
	}
	list := make([]uint32, len(frames))
	for i := range frames {
		n, ok := e.numbers[frames[i]]
		if !ok {
			n = uint32(len(e.frames))
			e.frames = append(e.frames, frames[i])
			e.numbers[frames[i]] = n
		}
		list[i] = n
	}
	e.lists[addr], e.added = list, true
}

// Consult adds the files that were consulted for answers. If one of them was consulted
// before and has changed since, the entry will not be saved.
func (e *Entry) Consult(files []symbol.Consulted) {
	if e == nil {
		return
	}
	for _, c := range files {
		i := slices.IndexFunc(e.consulted, func(o symbol.Consulted) bool { return o.Name == c.Name })
		switch {
		case i < 0:
			e.consulted = append(e.consulted, c)
		case e.consulted[i] != c:
			e.void = true
		}
	}
}

// Save writes the entry to the cache if something was added. If it returns an error,
// nothing was written.
func (e *Entry) Save() error {
	if e == nil || !e.added || e.void {
		return nil
	}
	e.added = false
	for _, c := range e.consulted {
		if c.Size >= 0 && time.Since(time.Unix(0, c.Changed)) < settled {
			return nil
		}
	}
	if !unchanged(e.consulted) {
		return nil
	}
	e.merge()
	data := e.encode()
	if len(data) > maxFile {
		return nil
	}
	if err := e.cache.prune(int64(len(data)), e.path); err != nil {
		return err
	}
	return e.cache.write(e.path, data)
}

// merge adds the answers that another process has written in the meantime.
func (e *Entry) merge() {
	other := newEntry(e.cache, e.key, e.path)
	if other.read() != nil {
		return
	}
	var frames []lines.Frame
	for addr := range other.lists {
		if _, ok := e.lists[addr]; !ok {
			frames, _ = other.Append(frames[:0], addr)
			e.Add(addr, frames)
		}
	}
	e.Consult(other.consulted)
	e.added = false
}
