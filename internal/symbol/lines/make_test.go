package lines

import (
	"debug/dwarf"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/binio"
)

// maker makes the debugging information of a function f that contains an inlined call of g,
// in any version, width and byte order.
type maker struct {
	width
	order binio.Order
	b     []byte
}

const (
	madeAddr = 0x1000 // address of f
	madeSize = 0x40
)

func (m *maker) u8(v ...uint8) {
	m.b = append(m.b, v...)
}

func (m *maker) uint(size int, v uint64) {
	switch size {
	case 2:
		m.b = m.order.AppendU16(m.b, uint16(v))
	case 4:
		m.b = m.order.AppendU32(m.b, uint32(v))
	case 8:
		m.b = m.order.AppendU64(m.b, v)
	}
}

func (m *maker) uleb(v ...uint64) {
	for _, v := range v {
		m.b = binio.AppendUleb128(m.b, v)
	}
}

func (m *maker) text(s string) {
	m.b = append(append(m.b, s...), 0)
}

func (m *maker) offsetTo(v uint64) { m.uint(m.offset(), v) }

// unit appends the length of a unit and then what part appends.
func (m *maker) unit(part func()) {
	before := m.b
	m.b = nil
	part()
	body := m.b
	m.b = before
	if m.wide {
		m.uint(4, 0xffffffff)
	}
	m.offsetTo(uint64(len(body)))
	m.b = append(m.b, body...)
}

// done returns what was appended and begins the next section.
func (m *maker) done() []byte {
	b := m.b
	m.b = nil
	return b
}

// abbreviation appends an abbreviation; attrs are pairs of attribute and form.
func (m *maker) abbreviation(code uint64, tag dwarf.Tag, children uint8, attrs ...uint64) {
	m.uleb(code, uint64(tag))
	m.u8(children)
	m.uleb(attrs...)
	m.u8(0, 0)
}

// make makes all sections.
func (m *maker) make() *Info {
	i := &Info{order: m.order}
	sec, linkage, high := uint64(formSecOffset), uint64(dwarf.AttrLinkageName), uint64(formData4)
	if m.version < 4 {
		sec, linkage, high = uint64(formData4), uint64(attrMIPSLinkageName), uint64(formAddr)
		if m.wide {
			sec = uint64(formData8)
		}
	}
	root := []uint64{uint64(dwarf.AttrCompDir), uint64(formString), uint64(dwarf.AttrStmtList), sec, uint64(dwarf.AttrLowpc), uint64(formAddr)}
	low := uint64(formAddr)
	switch {
	case m.version == 2:
		root = append(root, uint64(dwarf.AttrHighpc), uint64(formAddr))
	case m.version < 5:
		root = append(root, uint64(dwarf.AttrRanges), sec)
	default:
		root = append(root, uint64(dwarf.AttrRanges), uint64(formRnglistx), uint64(dwarf.AttrRnglistsBase), sec, uint64(dwarf.AttrAddrBase), sec)
		low = uint64(formAddrx)
	}
	m.abbreviation(1, dwarf.TagCompileUnit, 1, root...)
	m.abbreviation(2, dwarf.TagSubprogram, 0, uint64(dwarf.AttrName), uint64(formString), uint64(dwarf.AttrInline), uint64(formData1))
	m.abbreviation(3, dwarf.TagSubprogram, 1, linkage, uint64(formStrp), uint64(dwarf.AttrName), uint64(formString), uint64(dwarf.AttrLowpc), low, uint64(dwarf.AttrHighpc), high)
	m.abbreviation(4, dwarf.TagInlinedSubroutine, 0, uint64(dwarf.AttrAbstractOrigin), uint64(formRef4), uint64(dwarf.AttrLowpc), uint64(formAddr),
		uint64(dwarf.AttrHighpc), high, uint64(dwarf.AttrCallFile), uint64(formUdata), uint64(dwarf.AttrCallLine), uint64(formIndirect))
	m.abbreviation(5, dwarf.TagNamespace, 1, uint64(dwarf.AttrName), uint64(formString))
	m.u8(0)
	i.abbrev = m.done()
	m.text("")
	m.text("_Z1fv")
	i.str = m.done()
	m.makeInfo()
	i.info = m.done()
	m.unit(m.makeLine)
	i.line = m.done()
	m.makeRanges(i)
	return i
}

// length appends the length of code or, in version 2 and 3, its end.
func (m *maker) length(start, n uint64) {
	if m.version >= 4 {
		m.uint(4, n)
		return
	}
	m.uint(int(m.addr), start+n)
}

func (m *maker) makeInfo() {
	head := 4
	if m.wide {
		head = 12
	}
	m.unit(func() {
		m.uint(2, uint64(m.version))
		if m.version >= 5 {
			m.u8(unitCompile, m.addr)
		}
		m.offsetTo(0)
		if m.version < 5 {
			m.u8(m.addr)
		}
		m.uleb(1)
		m.text("/dir")
		m.offsetTo(0)
		m.uint(int(m.addr), 0)
		switch {
		case m.version == 2:
			m.uint(int(m.addr), madeAddr+madeSize)
		case m.version < 5:
			m.offsetTo(0)
		default:
			m.uleb(0)
			m.offsetTo(0)
			m.offsetTo(8)
		}
		m.uleb(5)
		m.text("std")
		origin := uint64(head + len(m.b))
		m.uleb(2)
		m.text("g")
		m.u8(1)
		m.uleb(0, 3)
		m.offsetTo(1)
		m.text("f")
		if m.version >= 5 {
			m.uleb(0)
		} else {
			m.uint(int(m.addr), madeAddr)
		}
		m.length(madeAddr, madeSize)
		m.uleb(4)
		m.uint(4, origin)
		m.uint(int(m.addr), madeAddr+0x10)
		m.length(madeAddr+0x10, 0x10)
		m.uleb(1, uint64(formData2))
		m.uint(2, 11)
		m.uleb(0, 0)
	})
}

func (m *maker) makeLine() {
	m.uint(2, uint64(m.version))
	if m.version >= 5 {
		m.u8(m.addr, 0)
	}
	rest := *m
	rest.b = nil
	rest.u8(1)
	if m.version >= 4 {
		rest.u8(1)
	}
	rest.u8(1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1)
	if m.version < 5 {
		rest.text("inc")
		rest.text("")
		rest.text("a.c")
		rest.uleb(0, 0, 0)
		rest.text("b.h")
		rest.uleb(1, 0, 0)
		rest.text("")
	} else {
		rest.u8(1)
		rest.uleb(contentPath, uint64(formString), 2)
		rest.text("/dir")
		rest.text("inc")
		rest.u8(2)
		rest.uleb(contentPath, uint64(formString), contentDir, uint64(formUdata), 3)
		for dir, name := range []string{"a.c", "a.c", "b.h"} {
			rest.text(name)
			rest.uleb(uint64(dir / 2))
		}
	}
	m.offsetTo(uint64(len(rest.b)))
	m.b = append(m.b, rest.b...)
	m.u8(0, 1+m.addr, lineSetAddress)
	m.uint(int(m.addr), madeAddr)
	m.u8(lineAdvanceLine, 9, lineCopy)                                         // a.c:10
	m.u8(lineSetFile, 2, lineAdvanceLine, 0x79, lineAdvancePC, 0x10, lineCopy) // b.h:3
	m.u8(lineSetFile, 1, lineAdvanceLine, 9, lineAdvancePC, 0x10, lineCopy)    // a.c:12
	m.u8(lineConstAddPC, lineFixedAdvance)                                     // 17 bytes and
	m.uint(2, 0x0d)
	m.u8(10+1*14+5+2, lineSetColumn, 7, lineNegate, lineBlock, 0, 2, 4, 9) // a.c:14 at 0x3f
	m.u8(lineAdvancePC, 1, 0, 1, lineEndSequence)
}

func (m *maker) makeRanges(i *Info) {
	size := int(m.addr)
	// A range that the linker discarded, a base, f, the end.
	m.uint(size, 1)
	m.uint(size, 2)
	m.uint(size, ^uint64(0))
	m.uint(size, madeAddr-0x100)
	m.uint(size, 0x100)
	m.uint(size, 0x100+madeSize)
	m.uint(size, 0)
	m.uint(size, 0)
	i.ranges = m.done()
	m.offsetTo(uint64(m.offset())) // the index, right after the offset
	m.u8(rangeStartEnd)
	m.uint(size, 1)
	m.uint(size, 2)
	m.u8(rangeBaseIndex, 0, rangeOffsets, 0, 8, rangeBaseAddress)
	m.uint(size, madeAddr)
	m.u8(rangeOffsets, 8, 0x10, rangeStartLength)
	m.uint(size, madeAddr+0x10)
	m.u8(8, rangeStartxLen, 1, 8, rangeStartEndx, 2, 3, rangeEnd)
	i.rangeLists = m.done()
	m.uint(8, 0) // head
	for _, at := range []uint64{0, 0x18, 0x20, madeSize} {
		m.uint(size, madeAddr+at)
	}
	i.addr = m.done()
}

// made is the extent of the code that a maker describes.
var made = []extent{{0x800, 0x2000}}

// makers returns makers of all kinds.
func makers() (all []*maker) {
	for version := uint16(2); version <= 5; version++ {
		for _, wide := range []bool{false, true} {
			for _, addr := range []uint8{4, 8} {
				for _, big := range []bool{false, true} {
					all = append(all, &maker{width: width{version, wide, addr}, order: binio.Order{Big: big, Pointer: int(addr)}})
				}
			}
		}
	}
	return all
}

func TestMade(t *testing.T) {
	f := func(line int) Frame { return Frame{Function: "_Z1fv", File: "/dir/a.c", Line: line} }
	g := Frame{Function: "g", Namespace: "std", File: "/dir/inc/b.h", Line: 3, Inlined: true}
	for _, m := range makers() {
		t.Run(fmt.Sprintf("version %d wide %v address %d big %v", m.version, m.wide, m.addr, m.order.Big), func(t *testing.T) {
			tab := newTable(m.make(), made, func(uint64) string { return "" })
			for addr, want := range map[uint64][]Frame{
				madeAddr - 1: nil, madeAddr: {f(10)}, madeAddr + 0x0f: {f(10)}, madeAddr + 0x10: {g, f(11)}, madeAddr + 0x1f: {g, f(11)},
				madeAddr + 0x20: {f(12)}, madeAddr + 0x3e: {f(12)}, madeAddr + 0x3f: {f(14)}, madeAddr + madeSize: nil,
			} {
				if diff := cmp.Diff(want, tab.AppendFrames(nil, addr)); diff != "" {
					t.Errorf("%#x (-want +got):\n%s", addr, diff)
				}
			}
			if err := tab.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Missing or wrong bytes affect only what they describe.
func TestCut(t *testing.T) {
	for _, m := range makers() {
		whole := m.make()
		for _, cut := range []func(*Info, int) bool{
			func(i *Info, n int) bool { ok := n < len(i.info); i.info = i.info[:min(n, len(i.info))]; return ok },
			func(i *Info, n int) bool {
				ok := n < len(i.abbrev)
				i.abbrev = i.abbrev[:min(n, len(i.abbrev))]
				return ok
			},
			func(i *Info, n int) bool { ok := n < len(i.line); i.line = i.line[:min(n, len(i.line))]; return ok },
			func(i *Info, n int) bool {
				ok := n < len(i.ranges)
				i.ranges = i.ranges[:min(n, len(i.ranges))]
				return ok
			},
			func(i *Info, n int) bool {
				ok := n < len(i.rangeLists)
				i.rangeLists = i.rangeLists[:min(n, len(i.rangeLists))]
				return ok
			},
			func(i *Info, n int) bool { ok := n < len(i.addr); i.addr = i.addr[:min(n, len(i.addr))]; return ok },
		} {
			for n := 0; ; n++ {
				i := *whole
				if !cut(&i, n) {
					break
				}
				checkTable(t, newTable(&i, made, func(uint64) string { return "s" }))
			}
		}
	}
}
