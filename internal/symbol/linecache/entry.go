package linecache

import (
	"errors"
	"os"
	"slices"
	"time"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// Entry is what is known of one ELF file. Its methods do nothing if it is nil.
type Entry struct {
	cache     *Cache
	key, path string
	consulted []symbol.Consulted
	frames    []lines.Frame
	numbers   map[lines.Frame]uint32
	lists     map[uint64][]uint32 // by address, of frames
	added     bool
	void      bool // it cannot be kept
}

func newEntry(c *Cache, key, path string) *Entry {
	e := &Entry{cache: c, key: key, path: path}
	e.clear()
	return e
}

func (e *Entry) clear() {
	e.consulted, e.frames, e.numbers, e.lists = nil, nil, make(map[lines.Frame]uint32), make(map[uint64][]uint32)
}

// read reads the file. With an error nothing is known.
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

// readFile reads a file that is not too large.
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

// unchanged says whether all files are what they were.
func unchanged(files []symbol.Consulted) bool {
	return !slices.ContainsFunc(files, func(c symbol.Consulted) bool { return symbol.Consult(c.Name) != c })
}

// Append appends what is known of an address, the innermost function first. ok is
// false if nothing is.
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

// Add makes an answer known.
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

// Consult notes the files that answers were looked for in. Those that are known
// already are not if a file is another one than it was, and nothing will be kept.
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

// Save writes what was added to the cache. An error means that nothing was.
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

// merge takes over what another process has written meanwhile.
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
