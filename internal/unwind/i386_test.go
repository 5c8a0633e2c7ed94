package unwind

import (
	"debug/elf"
	"testing"
)

// TestI386 covers what compilers make: a frame with and without a frame pointer, a realigned
// stack, and the last function.
func TestI386(t *testing.T) {
	f := newMade(elf.EM_386)
	f.function(0x10, 0x20, 0x41, 0x0e, 8, 0x85, 2, 0x42, 0x0d, 5)
	f.function(0x30, 0x50, 0x44, 0x0c, 1, 0, 0x49, 0x10, 5, 2, 0x75, 0, 0x43, 0x0f, 3, 0x75, 0x7c, 6)
	f.function(0x60, 0x70, 0x0e, 12, 0x83, 2)
	f.function(0x80, 0x90, 0x0e, 6)
	f.function(0xa0, 0xb0, 0x07, 8)
	want := "10: cfa=sp+4; 11: cfa=sp+8 fp=[cfa-8]; 13: cfa=fp+8 fp=[cfa-8]; 20: none; " +
		"30: cfa=sp+4; 34: cfa=r1+0; 3d: cfa=r1+0 fp=[fp+0]; 40: cfa=*(fp-4)+0 fp=[fp+0]; 50: none; " +
		"60: cfa=sp+12; 70: none; 80: unsupported; 90: none; a0: end; b0: none"
	for _, f.bare = range []bool{false, true} { // with and without section headers
		table := f.table(t)
		if got := table.text(); got != want || table.Word != 4 {
			t.Errorf("words of %d bytes, rows\n%s, want\n%s", table.Word, got, want)
		}
	}
}

// TestRestorersI386 checks that the two signal frames are distinguished by their code, and that
// the rule of the old one ends where the stack pointer has moved.
func TestRestorersI386(t *testing.T) {
	f := newMade(elf.EM_386)
	copy(f.code[0x28:], mov173)
	copy(f.code[0x48:], mov119)
	copy(f.code[0x80:], movRAX)
	copy(f.code[0xa1:], []byte{0x8d, 0x24, 0x9c, 0x83, 0x3c, 0x24, 0}) // of makecontext
	want := "27: signal; 2f: none; 47: old signal; 49: unsupported; 50: none; a0: end; a8: none"
	if got := f.table(t).text(); got != want {
		t.Errorf("without FDEs: rows\n%s, want\n%s", got, want)
	}
	f.needs = true
	if table, err := f.build(t); err == nil {
		t.Errorf("a file that needs a library: %s", table.text())
	}
	f.signalFunction(0x27, 0x2f)
	f.signalFunction(0x47, 0x50)
	f.signalFunction(0x80, 0x90)
	want = "27: signal; 2f: none; 47: old signal; 49: unsupported; 50: none; 80: unsupported; 90: none"
	if got := f.table(t).text(); got != want {
		t.Errorf("with FDEs: rows\n%s, want\n%s", got, want)
	}
}
