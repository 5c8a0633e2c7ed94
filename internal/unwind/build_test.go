package unwind

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"rtrace-bpf/trace"
)

// text returns all rows of a table; addresses are relative to the start of the code.
func (t *Table) text() string {
	var all []string
	for _, r := range t.Rows {
		all = append(all, fmt.Sprintf("%x: %v", t.Base+uint64(r.PC)-codeAddr, t.Rules[r.Rule].Frame(t.Word)))
	}
	return strings.Join(all, "; ")
}

func TestBuild(t *testing.T) {
	tests := []struct {
		name string
		make func(*made)
		want string
	}{
		{"one function", func(f *made) {
			f.function(0x10, 0x20, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6)
		}, "10: cfa=sp+8; 11: cfa=sp+16 fp=[cfa-16]; 14: cfa=fp+16 fp=[cfa-16]; 20: none"},
		{"another register only", func(f *made) { f.function(0x10, 0x20, 0x41, 0x83, 2) }, "10: cfa=sp+8; 20: none"},
		{"padding", func(f *made) {
			f.function(0x10, 0x21)
			f.function(0x30, 0x40)
		}, "10: cfa=sp+8; 40: none"},
		{"padding after another rule", func(f *made) {
			f.function(0x10, 0x21, 0x41, 0x0e, 16)
			f.function(0x30, 0x40)
		}, "10: cfa=sp+8; 11: cfa=sp+16; 21: none; 30: cfa=sp+8; 40: none"},
		{"gap", func(f *made) {
			f.function(0x10, 0x20)
			f.function(0x30, 0x40)
		}, "10: cfa=sp+8; 20: none; 30: cfa=sp+8; 40: none"},
		{"not aligned", func(f *made) {
			f.function(0x10, 0x20)
			f.function(0x24, 0x40)
		}, "10: cfa=sp+8; 20: none; 24: cfa=sp+8; 40: none"},
		{"without a gap", func(f *made) {
			f.function(0x10, 0x20, 0x41, 0x0e, 16)
			f.function(0x20, 0x30, 0x0e, 16)
		}, "10: cfa=sp+8; 11: cfa=sp+16; 30: none"},
		{"out of order", func(f *made) {
			f.function(0x40, 0x50)
			f.function(0x10, 0x20, 0x0e, 16)
		}, "10: cfa=sp+16; 20: none; 40: cfa=sp+8; 50: none"},
		{"nothing, removed and elsewhere", func(f *made) {
			f.function(0x10, 0x10)
			f.function(0x20, 0x30)
			f.function(-codeAddr, 0x10-codeAddr)
			f.function(codeSize, codeSize+0x10)
		}, "20: cfa=sp+8; 30: none"},
		{"beyond the code", func(f *made) { f.function(0x1f0, 0x2000) }, "1f0: cfa=sp+8; 200: none"},
		{"overlap", func(f *made) {
			f.function(0x10, 0x30, 0x0e, 16, 0x58, 0x0e, 24) // another row at 0x28
			f.function(0x20, 0x40)
		}, "10: cfa=sp+16; 20: cfa=sp+8; 40: none"},
		{"one in another", func(f *made) {
			f.function(0x10, 0x80, 0x0e, 16)
			f.function(0x20, 0x40)
		}, "10: cfa=sp+16; 20: cfa=sp+8; 40: none"},
		{"one twice", func(f *made) {
			f.function(0x10, 0x30)
			f.function(0x10, 0x20, 0x0e, 16)
		}, "10: cfa=sp+8; 30: none"},
		{"broken instructions", func(f *made) {
			f.function(0x10, 0x20, 0x41, 0x0e, 16, 0x41, 0x3f)
			f.function(0x20, 0x30)
		}, "10: cfa=sp+8; 11: cfa=sp+16; 12: unsupported; 20: cfa=sp+8; 30: none"},
		{"broken at once", func(f *made) {
			f.function(0x10, 0x20)
			f.function(0x30, 0x40, 0x3f)
		}, "10: cfa=sp+8; 20: none; 30: unsupported; 40: none"},
		{"broken entry", func(f *made) {
			f.entry(uint32(len(f.frames)+4), 1, 2, 3)
			f.function(0x30, 0x40)
		}, "30: cfa=sp+8; 40: none"},
		{"return address elsewhere", func(f *made) {
			at := len(f.frames)
			f.entry(0, 1, 'z', 'R', 0, 1, 0x78, 15, 1, 0, 0x0c, 7, 8, 0x90, 1, 0x8f, 1)
			f.functionOf(at, 0x10, 0x20)
		}, "10: unsupported; 20: none"},
		{"end", func(f *made) { f.function(0x10, 0x20, 0x07, 16) }, "10: end; 20: none"},
		{"the end of the memory", func(f *made) { f.function(0x10, -codeAddr-1) }, "10: cfa=sp+8; 200: none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newMade(elf.EM_X86_64)
			tt.make(f)
			for _, f.bare = range []bool{false, true} { // with and without section headers
				if got := f.table(t).text(); got != tt.want {
					t.Errorf("rows\n%s, want\n%s", got, tt.want)
				}
			}
		})
	}
}

// TestCounts checks the figures of a table.
func TestCounts(t *testing.T) {
	f := newMade(elf.EM_X86_64)
	f.function(0x10, 0x20, 0x0e, 12) // not a multiple of 8
	f.function(0x20, 0x30, 0x3f)     // the same rule continues
	f.function(0x40, 0x50)
	f.function(0x60, 0x70, 0x41, 0x3f)
	f.entry(uint32(len(f.frames)+4), 1, 2, 3)
	table := f.table(t)
	if table.Functions != 4 || table.Unsupported != 2 || table.Broken != 3 {
		t.Errorf("%d functions, %d unsupported, %d broken, want 4, 2, 3", table.Functions, table.Unsupported, table.Broken)
	}
}

func TestErrors(t *testing.T) {
	f := newMade(elf.EM_X86_64)
	if _, err := f.build(t); !errors.Is(err, ErrNoFrames) {
		t.Errorf("without an FDE: %v", err)
	}
	f.frames = nil
	if _, err := f.build(t); !errors.Is(err, ErrNoFrames) {
		t.Errorf("without entries: %v", err)
	}
	f = newMade(elf.EM_X86_64)
	f.entry(uint32(len(f.frames)+4), 1, 2, 3)
	if _, err := f.build(t); !syntax(err) || !errors.Is(err, trace.ErrTruncated) {
		t.Errorf("with nothing but a broken entry: %v", err)
	}
	f = newMade(elf.EM_RISCV)
	f.function(0, 0x10)
	if _, err := f.build(t); !syntax(err) || !errors.Is(err, trace.ErrUnsupported) {
		t.Errorf("another machine: %v", err)
	}
}

func syntax(err error) bool {
	_, ok := errors.AsType[*trace.SyntaxError](err)
	return ok
}

// TestARM64 covers what compilers make: both registers saved as a pair, a leaf function, and
// signed return addresses, in both byte orders.
func TestARM64(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		f := &made{machine: elf.EM_AARCH64, order: order}
		f.entry(0, commonARM64...)
		f.function(0x10, 0x40, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29)
		f.function(0x50, 0x60)
		f.function(0x70, 0x80, 0x0e, 16, 0x9e, 2)
		want := "10: cfa=sp+0 ra=link; 14: cfa=sp+32 fp=[cfa-32] ra=after fp; 18: cfa=fp+32 fp=[cfa-32] ra=after fp; 40: none; " +
			"50: cfa=sp+0 ra=link; 60: none; 70: cfa=sp+16 ra=[cfa-16]; 80: none"
		if got := f.table(t).text(); got != want {
			t.Errorf("%v: rows\n%s, want\n%s", order, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	f := newMade(elf.EM_X86_64)
	f.function(0x10, 0x20, 0x07, 16)
	f.function(0x30, 0x40)
	table := f.table(t)
	for addr, want := range map[uint64]Rule{
		0: RuleNone, codeAddr + 0xf: RuleNone, codeAddr + 0x10: RuleEnd, codeAddr + 0x1f: RuleEnd, codeAddr + 0x20: RuleNone,
		codeAddr + 0x2f: RuleNone, codeAddr + 0x40: RuleNone, codeAddr + 1<<32 + 0x18: RuleNone, ^uint64(0): RuleNone,
	} {
		if got := table.Find(addr); got != want {
			t.Errorf("Find(%#x) = %v, want %v", addr, got, want)
		}
	}
}
