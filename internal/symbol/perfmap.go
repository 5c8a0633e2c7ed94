package symbol

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
)

// Limits of a map of generated code.
const (
	maxPerfMap     = 64 << 20 // bytes of the file
	maxPerfEntries = 1 << 20
	maxPerfLine    = 1 << 16 // bytes; longer ones are left out
)

// PerfMap is the names of code that a process made, as a just-in-time compiler
// writes them for perf: lines with start and size in base 16 and a name. Of code
// that was put where other code was before, the later line counts, whenever the
// address was used. A nil map has no names.
type PerfMap struct {
	path    string
	entries []perfEntry
	starts  []uint64
	owners  []int32 // entry that owns [starts[i], starts[i+1]), or -1
}

type perfEntry struct {
	start, end uint64
	name       string
}

// OpenPerfMap reads the map file at path, or returns nil if there is none. It
// reads regular files only. Lines that are none are left out. If trusted is not nil,
// a file for which that is false is an error, and a symbolic link is not followed.
// The error of ReadPerfMap is no reason to leave the map alone.
func OpenPerfMap(path string, trusted func(fs.FileInfo) bool) (*PerfMap, error) {
	flags := 0
	if trusted != nil {
		flags = noFollow
	}
	f, info, err := openWith(path, flags)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	if trusted != nil && !trusted(info) {
		return nil, fmt.Errorf("%s was made by another user than the process's: its names are not used", path)
	}
	return ReadPerfMap(f, path)
}

// ReadPerfMap reads a map; path is what Path returns. Of a map that is too large, it
// returns the beginning and an error.
func ReadPerfMap(r io.Reader, path string) (*PerfMap, error) {
	m := &PerfMap{path: Printable(path)}
	limited := &io.LimitedReader{R: r, N: maxPerfMap + 1}
	b := bufio.NewReaderSize(limited, maxPerfLine)
	var tooLarge error
	for skip := false; ; {
		line, err := b.ReadSlice('\n')
		if limited.N == 0 || len(m.entries) == maxPerfEntries && len(line) > 0 {
			tooLarge = fmt.Errorf("the perf map %s has more than %d MiB or %d functions: the others have no names", path, maxPerfMap>>20, maxPerfEntries)
			break
		}
		switch {
		case err == bufio.ErrBufferFull:
			skip = true
			continue
		case skip:
			skip = false
		default:
			m.add(line)
		}
		if err != nil {
			break
		}
	}
	m.spans()
	return m, tooLarge
}

// add takes over a line.
func (m *PerfMap) add(line []byte) {
	start, rest, ok1 := perfNumber(line)
	size, name, ok2 := perfNumber(rest)
	name = bytes.TrimSpace(name)
	if ok1 && ok2 && len(name) > 0 && size > 0 && start+size > start {
		m.entries = append(m.entries, perfEntry{start, start + size, Printable(string(name))})
	}
}

// perfNumber takes a number in base 16 off a line. Some writers put 0x before it.
func perfNumber(line []byte) (n uint64, rest []byte, ok bool) {
	word, rest, _ := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte{' '})
	n, err := strconv.ParseUint(string(bytes.TrimPrefix(word, []byte("0x"))), 16, 64)
	return n, rest, err == nil
}

// spans finds out which entry owns which addresses: at each the last one.
func (m *PerfMap) spans() {
	byStart := make([]int32, len(m.entries))
	for i := range byStart {
		byStart[i] = int32(i)
	}
	slices.SortFunc(byStart, func(a, b int32) int {
		return cmp.Compare(m.entries[a].start, m.entries[b].start)
	})
	give := func(start uint64, owner int32) {
		if n := len(m.starts); n > 0 && m.starts[n-1] == start {
			m.owners[n-1] = owner
		} else if n == 0 || m.owners[n-1] != owner {
			m.starts, m.owners = append(m.starts, start), append(m.owners, owner)
		}
	}
	var open latest
	for i := 0; i < len(byStart) || len(open) > 0; {
		if len(open) > 0 && (i == len(byStart) || m.entries[open[0]].end <= m.entries[byStart[i]].start) {
			end := m.entries[open[0]].end
			for len(open) > 0 && m.entries[open[0]].end <= end {
				heap.Pop(&open)
			}
			owner := int32(-1)
			if len(open) > 0 {
				owner = open[0]
			}
			give(end, owner)
			continue
		}
		heap.Push(&open, byStart[i])
		give(m.entries[byStart[i]].start, open[0])
		i++
	}
}

// latest is entries, the last one of the file first.
type latest []int32

func (l latest) Len() int           { return len(l) }
func (l latest) Less(i, j int) bool { return l[i] > l[j] }
func (l latest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

// Push and Pop implement heap.Interface.
func (l *latest) Push(v any) { *l = append(*l, v.(int32)) }

// Pop removes the last element.
func (l *latest) Pop() any {
	v := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return v
}

// Path returns the file's path.
func (m *PerfMap) Path() string { return m.path }

// Lookup returns the name of the code at an address.
func (m *PerfMap) Lookup(addr uint64) (name string, ok bool) {
	if m == nil {
		return "", false
	}
	i, ok := m.find(addr)
	if !ok {
		return "", false
	}
	return m.entries[m.owners[i]].name, true
}

// Code returns the name of the code at an address, and from where to where around
// that it is.
func (m *PerfMap) Code(addr uint64) (name string, start, end uint64, ok bool) {
	if m == nil {
		return "", 0, 0, false
	}
	i, ok := m.find(addr)
	if !ok {
		return "", 0, 0, false
	}
	e := &m.entries[m.owners[i]]
	end = e.end
	if i+1 < len(m.starts) {
		end = min(end, m.starts[i+1])
	}
	return e.name, m.starts[i], end, true
}

// find returns the index in m.starts of what an entry owns at an address.
func (m *PerfMap) find(addr uint64) (span int, ok bool) {
	i, found := slices.BinarySearch(m.starts, addr)
	if !found {
		i--
	}
	return i, i >= 0 && m.owners[i] >= 0
}
