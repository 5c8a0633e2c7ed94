package lines

import (
	"bytes"
	"errors"
	"fmt"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// ErrNone reports that neither a file nor its debug file has debugging information.
var ErrNone = errors.New("no debugging information")

// MaxSize is the most bytes of debugging information that are read from one file. It
// ensures that offsets fit into 32 bits.
const MaxSize = 1 << 30

// Info is the debugging information of one file, as it is stored. It is immutable.
type Info struct {
	order binio.Order

	info, abbrev       []byte
	line               []byte
	str, lineStr       []byte
	strOffsets, addr   []byte
	ranges, rangeLists []byte

	// Parts that are in other files.
	alternate *Info        // nil if there is none
	pack      *pack        // the .dwp file, nil if there is none
	file      *symbol.File // finds .dwo files; may be nil
}

// Read reads the debugging information of a file or of its separate debug file, at most
// limit and MaxSize bytes. The error is ErrNone if there is none. The file must stay open
// until Read returns.
func Read(f *symbol.File, limit uint64) (*Info, error) {
	all, err := f.DebugSections(
		min(limit, MaxSize), ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str",
		".debug_str_offsets", ".debug_addr", ".debug_ranges", ".debug_rnglists",
	)
	if err != nil {
		return nil, err
	}
	if len(all[0]) == 0 || len(all[1]) == 0 {
		return nil, ErrNone
	}
	info := &Info{
		order: orderOf(f),
		info:  all[0], abbrev: all[1], line: all[2], str: all[3], lineStr: all[4],
		strOffsets: all[5], addr: all[6], ranges: all[7], rangeLists: all[8],
		file: f,
	}
	limit = min(limit, MaxSize)
	info.readAlternate(f, limit-min(limit, info.Size()))
	info.readPack(f, limit-min(limit, info.Size()))
	return info, nil
}

// readAlternate reads what dwz moved to another file, if that file is found.
func (i *Info) readAlternate(f *symbol.File, limit uint64) {
	all := f.AlternateSections(limit, ".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".debug_line_str", ".debug_str_offsets")
	if all == nil {
		return
	}
	i.alternate = &Info{
		order: i.order, info: all[0], abbrev: all[1], str: all[2], line: all[3], lineStr: all[4], strOffsets: all[5],
	}
}

func orderOf(f *symbol.File) binio.Order {
	const probe = 1
	return binio.Order{Big: f.Order().Uint16([]byte{0, probe}) == probe, Pointer: f.Class() / 8}
}

// Size returns how many bytes of memory the information occupies.
func (i *Info) Size() uint64 {
	n := 0
	for _, b := range [...][]byte{i.info, i.abbrev, i.line, i.str, i.lineStr, i.strOffsets, i.addr, i.ranges, i.rangeLists} {
		n += len(b)
	}
	if i.alternate != nil {
		n += int(i.alternate.Size())
	}
	if i.pack != nil {
		n += i.pack.size()
	}
	return uint64(n)
}

// cursor returns a cursor at an offset of a section. It is short if the offset is outside.
func (i *Info) cursor(section []byte, at uint64) cursor {
	c := cursor{data: section, order: i.order}
	c.skip(at)
	return c
}

// text returns the string that v holds or refers to.
func (i *Info) text(u *unit, v value) []byte {
	switch v.kind {
	case kindText:
		return v.text
	case kindStr:
		return text(i.str, v.n)
	case kindLineStr:
		return text(i.lineStr, v.n)
	case kindStrAlternate:
		if i.alternate != nil {
			return text(i.alternate.str, v.n)
		}
	case kindStrIndex:
		if v.n > MaxSize {
			return nil
		}
		c := i.cursor(i.strOffsets, min(u.strBase, MaxSize)+v.n*uint64(u.offset()))
		if at := c.uint(u.offset()); !c.short {
			return text(i.str, at)
		}
	}
	return nil
}

// address returns the address that v holds or refers to.
func (i *Info) address(u *unit, v value) (uint64, bool) {
	switch v.kind {
	case kindAddr:
		return v.n, true
	case kindAddrIndex:
		if v.n > MaxSize {
			return 0, false
		}
		c := i.cursor(i.addr, min(u.addrBase, MaxSize)+v.n*uint64(u.addr))
		addr := c.uint(int(u.addr))
		return addr, !c.short
	}
	return 0, false
}

// text returns the string at an offset of a section of strings, or nil if it is longer than
// a name may be. Such a string could be referred to many times.
func text(section []byte, at uint64) []byte {
	if at >= uint64(len(section)) {
		return nil
	}
	b := section[at:]
	b = b[:min(len(b), maxName+1)]
	n := bytes.IndexByte(b, 0)
	return b[:max(n, 0):max(n, 0)]
}

// fail returns a *trace.SyntaxError for a place of a section.
func fail(section string, at int, err error, what string) error {
	return &trace.SyntaxError{Format: section, Offset: int64(at), Err: fmt.Errorf("%s: %w", what, err)}
}
