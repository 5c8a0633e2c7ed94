package cfi

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// maker writes sections.
type maker struct {
	order binary.AppendByteOrder
	eh    bool
	wide  bool // entries with a length of eight bytes
	short bool // addresses of four bytes
	b     []byte
}

// Load addresses of the sections that are made, and the function that they describe.
const (
	madeAddr  = 0x5000
	madeStart = 0x401000
	madeEnd   = madeStart + 0x100
)

// entry appends an entry and returns its offset. link is the CIE, or -1.
func (m *maker) entry(link int, body ...byte) int {
	at := len(m.b)
	size := 4
	if m.wide && !m.eh {
		size = 8
	}
	if m.wide {
		m.b = m.order.AppendUint32(m.b, 0xffffffff)
		m.b = m.order.AppendUint64(m.b, uint64(size+len(body)))
	} else {
		m.b = m.order.AppendUint32(m.b, uint32(size+len(body)))
	}
	id := uint64(0)
	switch {
	case m.eh && link >= 0:
		id = uint64(len(m.b) - link)
	case !m.eh && link >= 0:
		id = uint64(link)
	case !m.eh:
		id = ^uint64(0)
	}
	if size == 8 {
		m.b = m.order.AppendUint64(m.b, id)
	} else {
		m.b = m.order.AppendUint32(m.b, uint32(id))
	}
	m.b = append(m.b, body...)
	return at
}

// address appends a number of the size of an address.
func (m *maker) address(b []byte, v uint64) []byte {
	if m.short {
		return m.order.AppendUint32(b, uint32(v))
	}
	return m.order.AppendUint64(b, v)
}

// fde appends an FDE of the made function with absolute addresses.
func (m *maker) fde(cie int, program ...byte) int {
	b := m.address(m.address(nil, madeStart), madeEnd-madeStart)
	if m.eh {
		b = append(b, 0) // no augmentation data
	}
	return m.entry(cie, append(b, program...)...)
}

// commonAMD64 is a CIE as compilers write it: CFA = rsp+8, ra at CFA-8.
var commonAMD64 = []byte{1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, opDefCFA, 7, 8, opOffset | 16, 1}

// common is the same without an augmentation, for .debug_frame.
var common = []byte{1, 0, 1, 0x78, 16, opDefCFA, 7, 8, opOffset | 16, 1}

func (m *maker) section(machine Machine) *Section {
	return &Section{Machine: machine, Data: m.b, Addr: madeAddr, EH: m.eh, Order: m.order.(binary.ByteOrder), TextBase: 0x400000, DataBase: 0x600000}
}

// commonI386 is a CIE of 32-bit x86: CFA = esp+4, ra at CFA-4.
var commonI386 = []byte{1, 'z', 'R', 0, 1, 0x7c, 8, 1, 0x00, opDefCFA, 4, 4, opOffset | 8, 1}

// little returns a maker of an .eh_frame that has the usual CIE at 0.
func little() *maker {
	m := &maker{order: binary.LittleEndian, eh: true}
	m.entry(-1, commonAMD64...)
	return m
}

// only returns the only FDE of a section.
func only(t *testing.T, s *Section) *FDE {
	t.Helper()
	var found *FDE
	for f, err := range s.FDEs {
		if err != nil {
			t.Fatal(err)
		}
		if found != nil {
			t.Fatal("more than one FDE")
		}
		kept := *f
		found = &kept
	}
	if found == nil {
		t.Fatal("no FDE")
	}
	return found
}

// text returns a row in readelf's format, with the registers that have a rule.
func (r *Row) text(m Machine) string {
	cfa := "exp"
	if r.CFA.Expr == nil {
		cfa = fmt.Sprintf("%s%+d", m.Register(r.CFA.Reg), r.CFA.Offset)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%x-%x %s", r.Start, r.End, cfa)
	for i := range r.Rules {
		if rule := &r.Rules[i]; rule.How != Unset {
			fmt.Fprintf(&b, " %s=%s", m.Register(uint8(i)), rule.text(m))
		}
	}
	if r.SignedRA {
		b.WriteString(" signed")
	}
	return b.String()
}

func (r *Rule) text(m Machine) string {
	switch r.How {
	case Unset, Undefined:
		return "u"
	case SameValue:
		return "s"
	case AtCFA:
		return fmt.Sprintf("c%+d", r.Offset)
	case CFAOffset:
		return fmt.Sprintf("v%+d", r.Offset)
	case Register:
		return m.Register(r.Reg)
	case AtExpression:
		return "exp"
	}
	return "vexp"
}

// rows returns all rows of an FDE as text, one per line; addresses are relative to the start of
// the function.
func rows(f *FDE, m Machine) (string, error) {
	var b strings.Builder
	err := f.Rows(func(r *Row) error {
		moved := *r
		moved.Start -= f.Start
		moved.End -= f.Start
		b.WriteString(moved.text(m) + "\n")
		return nil
	})
	return b.String(), err
}
