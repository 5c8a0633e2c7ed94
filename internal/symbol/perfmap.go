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

// Limits of a perf map.
const (
	maxPerfMap     = 64 << 20 // bytes of the file
	maxPerfEntries = 1 << 20
	maxPerfLine    = 1 << 16 // bytes; longer lines are ignored
)

// PerfMap holds the names of code that a process generated, as just-in-time compilers write
// them for perf: lines with the start and the size in hexadecimal and a name. If code was
// put where other code was, the later line counts for all addresses, no matter when they
// were recorded. A nil map has no names.
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

// OpenPerfMap reads the map file at path, or returns nil if there is none. It reads only
// regular files and skips malformed lines. If trusted is not nil, a symbolic link is not
// followed, and a file for which trusted returns false is an error. After an error of
// ReadPerfMap, the returned map can be used.
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
		return nil, fmt.Errorf("ignoring the names in %s: the file belongs to another user than the process", path)
	}
	return ReadPerfMap(f, path)
}

// ReadPerfMap reads a map; path is the value for Path. If the map is too large, ReadPerfMap
// returns its beginning and an error.
func ReadPerfMap(r io.Reader, path string) (*PerfMap, error) {
	m := &PerfMap{path: Printable(path)}
	limited := &io.LimitedReader{R: r, N: maxPerfMap + 1}
	b := bufio.NewReaderSize(limited, maxPerfLine)
	var tooLarge error
	for skip := false; ; {
		line, err := b.ReadSlice('\n')
		if limited.N == 0 || len(m.entries) == maxPerfEntries && len(line) > 0 {
			tooLarge = fmt.Errorf("the perf map %s has more than %d MiB or %d functions: the rest is ignored", path, maxPerfMap>>20, maxPerfEntries)
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

// add adds the function of a line.
func (m *PerfMap) add(line []byte) {
	start, rest, ok1 := perfNumber(line)
	size, name, ok2 := perfNumber(rest)
	name = bytes.TrimSpace(name)
	if ok1 && ok2 && len(name) > 0 && size > 0 && start+size > start {
		m.entries = append(m.entries, perfEntry{start, start + size, Printable(string(name))})
	}
}

// perfNumber reads a hexadecimal number from a line. Some writers put 0x before it.
func perfNumber(line []byte) (n uint64, rest []byte, ok bool) {
	word, rest, _ := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte{' '})
	n, err := strconv.ParseUint(string(bytes.TrimPrefix(word, []byte("0x"))), 16, 64)
	return n, rest, err == nil
}

// spans finds which entry owns which addresses: for each address, the last entry.
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

// latest is a heap of entries whose first element is the last one of the file.
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

// Code returns the name of the code at an address, and the range around the address to
// which the name applies.
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

// find returns the index in m.starts of the span that contains an address.
func (m *PerfMap) find(addr uint64) (span int, ok bool) {
	i, found := slices.BinarySearch(m.starts, addr)
	if !found {
		i--
	}
	return i, i >= 0 && m.owners[i] >= 0
}
