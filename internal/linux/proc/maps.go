package proc

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Perms is the permissions of a mapping.
type Perms uint8

// The permissions of a mapping.
const (
	Read Perms = 1 << iota
	Write
	Exec
	Shared // changes are visible to others; without it the mapping is private
)

// String returns p as the kernel prints it: "r-xp".
func (p Perms) String() string {
	text := []byte("---p")
	if p&Read != 0 {
		text[0] = 'r'
	}
	if p&Write != 0 {
		text[1] = 'w'
	}
	if p&Exec != 0 {
		text[2] = 'x'
	}
	if p&Shared != 0 {
		text[3] = 's'
	}
	return string(text)
}

// Map is one line of /proc/PID/maps: what is mapped at [Start, End).
type Map struct {
	Start, End uint64
	Perms      Perms
	Offset     uint64 // offset in the file, at Start
	Major      uint32 // device of the file, 0:0 if there is none
	Minor      uint32
	Inode      uint64
	// Path is the file's name as the kernel prints it, with a line feed spelled \012; or a name
	// in brackets such as [heap], [stack], [vdso], [uprobes], [anon:name]; or empty.
	Path string
	// Deleted reports that the name was removed after the file was mapped. A name that really
	// ends in " (deleted)" looks the same.
	Deleted bool
}

// File reports whether m maps a file that has a name in a file system. The file may be deleted
// or exist only in memory.
func (m *Map) File() bool {
	return strings.HasPrefix(m.Path, "/") && m.Inode != 0
}

// deletedSuffix is what the kernel's d_path appends to names that are gone.
const deletedSuffix = " (deleted)"

// maxLine is the longest line that is accepted. A path may have 4096 bytes, each of which may
// be printed as four.
const maxLine = 1 << 15

// maxNames is the most names that a MapsReader keeps between calls.
const maxNames = 1 << 14

// MapsReader reads the mappings of a process repeatedly without allocating, because it keeps
// the names and the buffer. The zero value is ready for use. Two goroutines must not use it at
// the same time.
type MapsReader struct {
	buf   []byte
	names map[string]string
}

// Parse reads mappings in the form of /proc/PID/maps from r and appends them to dst. The result
// shares no memory with r or mr. If there is an error, the mappings before it are returned.
func (mr *MapsReader) Parse(dst []Map, r io.Reader) ([]Map, error) {
	if mr.buf == nil {
		mr.buf = make([]byte, maxLine)
		mr.names = make(map[string]string)
	}
	line, have := 0, 0 // lines parsed; bytes in the buffer
	for {
		n, readErr := r.Read(mr.buf[have:])
		rest := mr.buf[:have+n]
		for {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 && readErr == io.EOF && len(rest) > 0 {
				end = len(rest) // the last line may lack its line feed
			}
			if end < 0 {
				break
			}
			line++
			m, ok := mr.parse(dst, rest[:end])
			if !ok {
				return dst, fmt.Errorf("maps line %d: %w", line, ErrSyntax)
			}
			dst = append(dst, m)
			rest = rest[min(end+1, len(rest)):]
		}
		have = copy(mr.buf, rest)
		switch {
		case readErr == io.EOF:
			return dst, nil
		case readErr != nil:
			return dst, readErr
		case have == len(mr.buf):
			return dst, fmt.Errorf("maps line %d: longer than %d bytes: %w", line+1, maxLine, ErrSyntax)
		}
	}
}

// parse returns the mapping of one line. before holds the mappings of the previous lines.
func (mr *MapsReader) parse(before []Map, text []byte) (Map, bool) {
	m, path, ok := parseMap(text)
	if !ok {
		return Map{}, false
	}
	if len(path) > 0 && path[0] == '/' && bytes.HasSuffix(path, []byte(deletedSuffix)) {
		path = path[:len(path)-len(deletedSuffix)]
		m.Deleted = true
	}
	m.Path = mr.name(before, path)
	return m, true
}

// name returns text as a string, and the same string for the same text. Most lines repeat the
// name of the previous line.
func (mr *MapsReader) name(before []Map, text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if n := len(before); n > 0 && before[n-1].Path == string(text) {
		return before[n-1].Path
	}
	if s, ok := mr.names[string(text)]; ok {
		return s
	}
	if len(mr.names) >= maxNames {
		clear(mr.names)
	}
	s := string(text)
	mr.names[s] = s
	return s
}

// ParseMaps reads mappings in the form of /proc/PID/maps. If there is an error, the mappings
// before it are returned.
func ParseMaps(r io.Reader) ([]Map, error) {
	var mr MapsReader
	return mr.Parse(nil, r)
}

// parseMap reads one line without its line feed:
// start-end perms offset major:minor inode [spaces path].
func parseMap(text []byte) (m Map, path []byte, ok bool) {
	c := fields{rest: text, ok: true}
	m.Start = c.hex('-')
	m.End = c.hex(' ')
	m.Perms = c.perms()
	m.Offset = c.hex(' ')
	major, minor := c.hex(':'), c.hex(' ')
	m.Major, m.Minor = uint32(major), uint32(minor)
	m.Inode = c.decimal()
	if !c.ok || m.Start > m.End || major > 1<<32-1 || minor > 1<<32-1 {
		return Map{}, nil, false
	}
	return m, bytes.TrimLeft(c.rest, " "), true
}

// fields reads one field after another from a line. After the first malformed field, ok is
// false and all others are 0.
type fields struct {
	rest []byte
	ok   bool
}

// hex reads a hexadecimal number and the byte that ends it.
func (c *fields) hex(end byte) (v uint64) {
	for i, b := range c.rest {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b >= 'a' && b <= 'f':
			b -= 'a' - 10
		case b == end && i > 0 && c.ok:
			c.rest = c.rest[i+1:]
			return v
		default:
			c.ok = false
			return 0
		}
		if v>>60 != 0 {
			break
		}
		v = v<<4 | uint64(b)
	}
	c.ok = false
	return 0
}

// decimal reads a decimal number, up to a space or the end of the line.
func (c *fields) decimal() (v uint64) {
	i := 0
	for ; i < len(c.rest) && c.rest[i] != ' '; i++ {
		d := c.rest[i] - '0'
		if d > 9 || v > (1<<64-1-uint64(d))/10 {
			c.ok = false
			return 0
		}
		v = v*10 + uint64(d)
	}
	c.ok = c.ok && i > 0
	c.rest = c.rest[i:]
	return v
}

// perms reads the permissions and the space after them.
func (c *fields) perms() (p Perms) {
	if len(c.rest) < 5 || c.rest[4] != ' ' {
		c.ok = false
		return 0
	}
	for i, letter := range []byte("rwx") {
		switch c.rest[i] {
		case letter:
			p |= 1 << i
		case '-':
		default:
			c.ok = false
		}
	}
	switch c.rest[3] {
	case 's':
		p |= Shared
	case 'p':
	default:
		c.ok = false
	}
	c.rest = c.rest[5:]
	return p
}
