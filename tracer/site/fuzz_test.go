package site

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// FuzzChoose takes arbitrary bytes for a function.
func FuzzChoose(f *testing.F) {
	for _, c := range slices.Concat(realAMD64, rules) {
		f.Add(code(f, c.code), uint64(entry), uint8(AMD64), c.f.Return, c.f.SkipNull, uint8(len(c.f.Args)), false)
	}
	for _, c := range choicesARM64 {
		f.Add(code(f, c.code), uint64(entry), uint8(ARM64), c.f.Return, c.f.SkipNull, uint8(len(c.f.Args)), true)
	}
	for _, c := range slices.Concat(realI386, rulesI386) {
		f.Add(code(f, c.code), uint64(entry), uint8(I386), c.f.Return, c.f.SkipNull, uint8(len(c.f.Args)), true)
	}
	f.Fuzz(func(t *testing.T, code []byte, entry uint64, arch uint8, ret, skip bool, args uint8, nops bool) {
		o := Options{Arch: AMD64 + Arch(arch-uint8(AMD64))%3, Nops: nops, Nop5: nops, GOT: entry}
		if o.Arch == I386 {
			entry &= 1<<31 - 1
		}
		fn := Function{Name: "f", Entry: entry, Code: code, Return: ret, SkipNull: skip}
		for i := range int(args % 8) {
			fn.Args = append(fn.Args, i)
		}
		if len(fn.Args) > 1 {
			fn.Factors = [2]int{0, 1}
		}
		fn.Incoming = Branches(o.Arch, code, entry, []uint64{entry})
		if !slices.IsSortedFunc(fn.Incoming, func(a, b Branch) int { return int(int64(a.From - b.From)) }) {
			t.Errorf("branches not in order: %+v", fn.Incoming)
		}
		s, err := Choose(o, fn)
		if err != nil {
			if len(code) > 0 && len(fn.Args) <= 6 && entry < 1<<63 && !(skip && args%8 == 0) && !errors.Is(err, ErrNoSite) {
				t.Errorf("unexpected error: %v", err)
			}
			return
		}
		checkSite(t, o, &fn, &s)
	})
}

// checkSite checks what must be true of each site.
func checkSite(t *testing.T, o Options, f *Function, s *Site) {
	t.Helper()
	if s.Offset < 0 || s.Offset >= min(len(f.Code), Window) || s.Addr != f.Entry+uint64(s.Offset) {
		t.Fatalf("site at %#x, +%d, of %d bytes", s.Addr, s.Offset, len(f.Code))
	}
	if len(s.Args) != len(f.Args) {
		t.Fatalf("%d places of %d arguments", len(s.Args), len(f.Args))
	}
	m, _ := machineOf(o)
	for _, p := range s.Args {
		if p.Reg >= NoReg || m.readable()&(1<<p.Reg) == 0 {
			t.Errorf("argument in unreadable register %d", p.Reg)
		}
	}
	if f.Return && s.StackAdjust != 0 {
		t.Errorf("return probe with the stack moved by %d", s.StackAdjust)
	}
	if s.StackAdjust < 0 {
		t.Errorf("stack moved by %d", s.StackAdjust)
	}
	if s.SkipsNull && !f.SkipNull {
		t.Error("null skipped without leave")
	}
	if s.Cost == Refused {
		t.Error("refused site")
	}
	chosen := 0
	for _, c := range s.Candidates {
		if c.Verdict == "chosen" {
			chosen++
			if c.Offset != s.Offset || c.Cost != s.Cost || c.Insn != s.Insn {
				t.Errorf("chosen %+v is not the site %+v", c, s)
			}
		}
	}
	if chosen != 1 {
		t.Errorf("%d candidates are chosen", chosen)
	}
	switch o.Arch {
	case ARM64:
		checkPathARM64(t, f, s)
	case I386:
		checkPathX86(t, o, f, s, 32)
	default:
		checkPathX86(t, o, f, s, 64)
	}
}

// checkPathX86 decodes up to the site with x86asm alone.
func checkPathX86(t *testing.T, o Options, f *Function, s *Site, bits int) {
	t.Helper()
	branches := 0
	offset := 0
	for offset < s.Offset {
		b := f.Code[offset:]
		if _, ok := landingPad(b); ok {
			offset += 4
			continue
		}
		x, err := x86asm.Decode(b, bits)
		if err != nil || x.Op == 0 {
			t.Fatalf("site at +%d after something unknown at +%d", s.Offset, offset)
		}
		if _, ok := x.Args[0].(x86asm.Rel); ok {
			branches++
			if x.Op != x86asm.JE {
				t.Errorf("site at +%d after %v", s.Offset, x)
			}
		}
		offset += x.Len
	}
	if offset != s.Offset {
		t.Fatalf("site at +%d is inside of an instruction that ends at +%d", s.Offset, offset)
	}
	if branches > 0 && !s.SkipsNull {
		t.Errorf("site at +%d after a branch", s.Offset)
	}
	if cheap := cheapX86(f.Code[offset:], o.Nops, bits); cheap != (s.Cost >= Emulated) {
		t.Errorf("% x is %v", f.Code[offset:min(len(f.Code), offset+8)], s.Cost)
	}
}

// cheapX86 is an independent implementation of the kernel's rules, with x86asm.
func cheapX86(b []byte, nops bool, bits int) bool {
	if _, ok := landingPad(b); ok {
		return false
	}
	x, err := x86asm.Decode(b, bits)
	if err != nil {
		return false
	}
	legacy := x.Len > 0 && slices.Contains([]byte{0x66, 0xf2, 0xf3, 0x67, 0x64, 0x65}, b[0])
	switch {
	case x.Op == x86asm.PUSH:
		_, reg := x.Args[0].(x86asm.Reg)
		return reg && b[x.Len-1]&0xf8 == 0x50 && (x.Len == 1 || x.Len == 2 && b[0] == 0x41 && bits == 64)
	case x.Op == x86asm.NOP && x.Args[0] == nil:
		prefixes := b[:x.Len-1]
		return !slices.ContainsFunc(prefixes, func(p byte) bool {
			return p == 0xf2 || p == 0xf3 || p == 0x66 && !nops || p&0xf0 == 0x40
		})
	case x.Op == x86asm.NOP:
		return nops
	case x.Op == x86asm.JRCXZ, x.Op == x86asm.JECXZ, x.Op == x86asm.JCXZ,
		x.Op == x86asm.LOOP, x.Op == x86asm.LOOPE, x.Op == x86asm.LOOPNE:
		return false
	}
	_, rel := x.Args[0].(x86asm.Rel)
	return rel && (x.PCRel != 0 || legacy) && x.Op != x86asm.XBEGIN
}

// checkPathARM64 checks the alignment, and that no branch precedes the site.
func checkPathARM64(t *testing.T, f *Function, s *Site) {
	t.Helper()
	if s.Offset%4 != 0 {
		t.Fatalf("site at +%d", s.Offset)
	}
	branches := 0
	for i := 0; i < s.Offset; i += 4 {
		w := binary.LittleEndian.Uint32(f.Code[i:])
		if w>>26&0x1f == 0x05 || w>>25&0x3f == 0x1a || w>>25 == 0x2a || w>>25 == 0x6b {
			branches++
		}
		if w == 0xd503233f {
			t.Errorf("site at +%d after paciasp", s.Offset)
		}
	}
	if branches > 0 && !s.SkipsNull {
		t.Errorf("site at +%d after a branch", s.Offset)
	}
}
