package unwind

import (
	"debug/elf"
	"slices"
	"testing"
)

var (
	movRAX = []byte{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}
	movEAX = []byte{0xb8, 15, 0, 0, 0, 0x0f, 0x05}
	movX8  = []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}
	mov173 = []byte{0xb8, 173, 0, 0, 0, 0xcd, 0x80}
	mov119 = []byte{0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80} // after pop %eax
)

// TestSignalFunctions checks that an FDE of a signal frame is accepted only if its code leaves
// a signal handler.
func TestSignalFunctions(t *testing.T) {
	f := newMade(elf.EM_X86_64)
	f.needs = true
	copy(f.code[0x20:], movRAX)
	f.function(0x10, 0x1f)
	f.signalFunction(0x1f, 0x29) // like glibc, from one byte before
	copy(f.code[0x30:], movEAX)
	f.signalFunction(0x30, 0x37)
	f.signalFunction(0x50, 0x60) // something else
	copy(f.code[0x70+5:], movEAX)
	f.signalFunction(0x70, 0x80) // more code than the restorer
	want := "10: cfa=sp+8; 1f: signal; 29: none; 30: signal; 37: none; 50: unsupported; 60: none; 70: unsupported; 80: none"
	if got := f.table(t).text(); got != want {
		t.Errorf("rows\n%s, want\n%s", got, want)
	}
}

// TestRestorers covers a C library that has no FDE for that code.
func TestRestorers(t *testing.T) {
	f := newMade(elf.EM_X86_64)
	copy(f.code[0x28:], movRAX)
	copy(f.code[0x60:], movEAX)
	copy(f.code[0x80:], movRAX[:8]) // truncated
	f.function(0x10, 0x25)
	f.function(0x40, 0x62) // ends within the second
	f.function(0x61, 0x70) // begins there
	f.function(0x90, 0xa0)
	want := "10: cfa=sp+8; 25: none; 27: signal; 31: none; 40: cfa=sp+8; 5f: signal; 67: none; 90: cfa=sp+8; a0: none"
	if got := f.table(t).text(); got != want {
		t.Errorf("rows\n%s, want\n%s", got, want)
	}
	f.needs = true
	if got := f.table(t); slices.Contains(got.Rules, RuleSignal) {
		t.Errorf("a file that needs a library: %s", got.text())
	}
	f.needs = false
	f.signalFunction(0x100, 0x110)
	if got := f.table(t); slices.Contains(got.Rules, RuleSignal) {
		t.Errorf("a file with FDEs of signal frames: %s", got.text())
	}
	f = newMade(elf.EM_AARCH64)
	copy(f.code[0x20:], movX8)
	if got, want := f.table(t).text(), "1f: signal; 28: none"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

// TestChunks searches code in which a restorer begins in one chunk and ends in the next.
func TestChunks(t *testing.T) {
	for at := chunk - len(movRAX) - 1; at < chunk+2; at++ {
		code := make([]byte, chunk+2*alignment)
		end := copy(code[at:], movRAX)
		b := builder{translator: newTranslator(1)}
		b.search(0x1000, code)
		b.search(0x1000+chunk, append(code[chunk:], make([]byte, 100)...))
		want := []function{{start: 0x1000 + uint64(at) - 1, end: 0x1000 + uint64(at+end), section: ofRestorer(0)}}
		if !slices.Equal(b.functions, want) {
			t.Errorf("at %d: found %+v, want %+v", at, b.functions, want)
		}
	}
}
