package lines

import (
	"rtrace-bpf/trace"
)

// Limits of the header of a line program.
const (
	maxFiles = 1 << 18 // folders, and files
	maxForms = 16      // kinds of fields of each
)

// Kinds of fields of a file in version 5 (DW_LNCT_*).
const (
	contentPath = 1
	contentDir  = 2
)

// sourceFile is a file that a line program names.
type sourceFile struct {
	name []byte
	dir  uint32 // index of its folder
}

// files is the source files of a unit.
type files struct {
	version uint16
	unitDir []byte   // where the compiler ran
	dirs    [][]byte // since version 5 the first one is unitDir
	list    []sourceFile
}

// path returns the name of the file with the given number. Like addr2line, it joins the
// parts and does not simplify the path.
func (f *files) path(number uint32) string {
	if f.version < 5 {
		if number == 0 {
			return ""
		}
		number--
	}
	if uint64(number) >= uint64(len(f.list)) {
		return ""
	}
	file := f.list[number]
	name := clip(file.name)
	if len(name) == 0 || name[0] == '/' {
		return string(name)
	}
	var folder []byte
	dir := uint64(file.dir)
	switch {
	case f.version < 5 && dir > 0 && dir-1 < uint64(len(f.dirs)):
		folder = clip(f.dirs[dir-1])
	case f.version >= 5 && dir < uint64(len(f.dirs)):
		folder = clip(f.dirs[dir])
	}
	path := make([]byte, 0, len(f.unitDir)+len(folder)+len(name)+2)
	if above := clip(f.unitDir); len(above) > 0 && (len(folder) == 0 || folder[0] != '/') {
		path = append(append(path, above...), '/')
	}
	if len(folder) > 0 {
		path = append(append(path, folder...), '/')
	}
	return string(append(path, name...))
}

// clip returns a path, or nil if it is longer than any path may be.
func clip(path []byte) []byte {
	if len(path) > maxPath {
		return nil
	}
	return path
}

// program is a line program and the contents of its header.
type program struct {
	t         *Table
	u         *unit
	c         cursor // at the instructions
	width     width  // of the line program itself
	minLength uint64
	maxOps    uint64
	lineBase  int64
	lineRange uint64
	opBase    uint8
	operands  [256]uint8 // number of operands of each standard instruction
	files     files
}

// openProgram reads the header of the line program of a unit.
func openProgram(t *Table, u *unit) (*program, error) {
	c := t.info.cursor(t.info.line, u.lines)
	start := c.at
	malformed := func(what string) (*program, error) {
		return nil, fail("debug_line", start, trace.ErrMalformed, what)
	}
	n, wide := c.length()
	if c.short || n > uint64(c.left()) {
		return nil, fail("debug_line", start, trace.ErrTruncated, "line program")
	}
	if !t.work(int(n)) {
		return nil, fail("debug_line", start, trace.ErrLimit, "line programs")
	}
	c.data = c.data[:c.at+int(n)]
	p := &program{t: t, u: u, width: u.width}
	p.width.wide, p.width.version = wide, uint16(c.uint(2))
	if p.width.version < 2 || p.width.version > 5 {
		return nil, fail("debug_line", start, trace.ErrUnsupported, "version")
	}
	if p.width.version >= 5 {
		if p.width.addr = c.u8(); p.width.addr != 4 && p.width.addr != 8 {
			return malformed("size of an address")
		}
		c.u8() // size of a segment selector
	}
	length := c.uint(p.width.offset())
	p.c = c
	p.c.skip(length) // to the instructions
	c.data = c.data[:p.c.at]
	p.minLength, p.maxOps = uint64(c.u8()), 1
	if p.width.version >= 4 {
		p.maxOps = max(uint64(c.u8()), 1)
	}
	c.u8() // whether lines are statements by default
	p.lineBase, p.lineRange, p.opBase = int64(int8(c.u8())), uint64(c.u8()), c.u8()
	if c.short || p.lineRange == 0 || p.opBase == 0 {
		return malformed("header of a line program")
	}
	for op := 1; op < int(p.opBase); op++ {
		p.operands[op] = c.u8()
	}
	p.files = files{version: p.width.version, unitDir: u.dir}
	if p.width.version >= 5 {
		p.readFiles(&c)
	} else {
		p.readOldFiles(&c)
	}
	if c.short || p.c.short {
		return malformed("files of a line program")
	}
	return p, nil
}

// readOldFiles reads the folders and files of versions 2 to 4.
func (p *program) readOldFiles(c *cursor) {
	for !c.short {
		dir := c.text()
		if len(dir) == 0 {
			break
		}
		if p.files.dirs = append(p.files.dirs, dir); len(p.files.dirs) > maxFiles {
			c.fail()
		}
	}
	for !c.short && p.readOldFile(c) {
	}
}

// readOldFile reads a file and reports whether there was one.
func (p *program) readOldFile(c *cursor) bool {
	name := c.text()
	if len(name) == 0 {
		return false
	}
	dir := uint32(min(c.uleb(), maxFiles+1))
	c.uleb() // time of the last change
	c.uleb() // size
	if c.short {
		return false
	}
	if len(p.files.list) >= maxFiles {
		c.fail()
		return false
	}
	p.files.list = append(p.files.list, sourceFile{name, dir})
	return true
}

// readFiles reads the folders and files of version 5.
func (p *program) readFiles(c *cursor) {
	dirs := p.readList(c)
	p.files.dirs = make([][]byte, len(dirs))
	for i := range dirs {
		p.files.dirs[i] = dirs[i].name
	}
	p.files.list = p.readList(c)
}

// readList reads a list of folders or files: the kinds of fields, the number of elements,
// and the elements.
func (p *program) readList(c *cursor) []sourceFile {
	var (
		forms [maxForms]form
		kinds [maxForms]uint64
	)
	n := int(c.u8())
	if n > maxForms {
		c.fail()
		return nil
	}
	smallest := 0 // bytes of an element
	for i := range n {
		kinds[i], forms[i] = c.uleb(), form(min(c.uleb(), maxForm))
		size, ok := forms[i].size(p.width)
		if !ok {
			c.fail()
			return nil
		}
		if size == varies {
			size = 1
		}
		smallest += size
	}
	count := c.uleb()
	if count == 0 {
		return nil
	}
	if count > maxFiles || smallest == 0 || count > uint64(c.left()/smallest) {
		c.fail()
		return nil
	}
	list := make([]sourceFile, count)
	for k := range list {
		for i := range n {
			v := c.take(attribute{form: forms[i]}, p.width, 0)
			switch kinds[i] {
			case contentPath:
				list[k].name = p.t.info.text(p.u, v)
			case contentDir:
				if v.kind == kindConst {
					list[k].dir = uint32(min(v.n, maxFiles+1))
				}
			}
		}
		if c.short {
			return nil
		}
	}
	return list
}
