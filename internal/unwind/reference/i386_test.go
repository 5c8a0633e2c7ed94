package reference

import (
	"debug/elf"
	"slices"
	"testing"
)

// Functions of i386 tests: a frame of 16 bytes with ebx saved, one that is relative to ebp, and
// the outermost one.
var (
	plainI386     = function{start: 0x1000, end: 0x1100, rules: []byte{cfaDefCFA, 4, 16, cfaOffset | 8, 1, cfaOffset | 3, 2}}
	basedI386     = function{start: 0x2000, end: 0x2100, rules: []byte{cfaDefCFA, 5, 8, cfaOffset | 8, 1, cfaOffset | 5, 2}}
	outermostI386 = function{start: 0x3000, end: 0x3100, rules: []byte{cfaDefCFA, 4, 4, cfaUndefined, 8}}
	tableI386     = []function{plainI386, basedI386, outermostI386}
)

func rulesI386(code ...byte) []function {
	return []function{plainI386, basedI386, outermostI386, {start: 0x4000, end: 0x4100, rules: code}}
}

func TestI386(t *testing.T) {
	const high = 0xfffff000
	at := func(pc, sp uint64) map[uint64]uint64 { return map[uint64]uint64{8: pc, 4: sp} }
	tests := []unwinding{
		{
			name: "to the outermost", functions: tableI386, regs: at(inPlain, 0x7000),
			memory: words{0x700c: inPlain, 0x701c: inOutermost},
			frames: []uint64{inPlain, inPlain, inOutermost}, end: Complete,
		},
		{
			name: "words are of four bytes", functions: tableI386, regs: at(inPlain|0xdead<<48, 0x7000|0xbeef<<32),
			memory: words{0x700c: 7<<32 | inOutermost},
			frames: []uint64{inPlain, inOutermost}, end: Complete,
		},
		{
			name: "by ebp", functions: tableI386, regs: map[uint64]uint64{8: inBased, 4: 0x7000, 5: 0xffffffff_00007010},
			memory: words{0x7010: 0xaaaaaaaa_00007020, 0x7014: 0xbbbbbbbb<<32 | inBased, 0x7020: 0, 0x7024: inOutermost},
			frames: []uint64{inBased, inBased, inOutermost}, end: Complete,
		},
		{
			name: "realigned", functions: rulesI386(cfaDefCFAExpr, 3, opBreg0+5, 0x7c, opDeref, cfaOffset|8, 1, cfaExpression, 5, 2, opBreg0+5, 0),
			regs:   map[uint64]uint64{8: inFunction, 4: 0x7000, 5: 0x7010},
			memory: words{0x700c: 0x7040, 0x703c: inBased, 0x7010: 0x7050, 0x7054: inOutermost, 0x7050: 0},
			frames: []uint64{inFunction, inBased, inOutermost}, end: Complete,
		},
		{
			name: "an offset that wraps around", functions: rulesI386(cfaDefCFA, 3, 0x90, 0xa0, 0x80, 0x80, 0x08, cfaOffset|8, 1), // 0x80001010
			regs:   map[uint64]uint64{8: inFunction, 4: 0x7000, 3: 0x80006010},
			memory: words{0x701c: inOutermost},
			frames: []uint64{inFunction, inOutermost}, end: Complete,
		},
		{
			name: "a frame that would wrap around", functions: tableI386, regs: at(inPlain, 0xfffffff4),
			frames: []uint64{inPlain}, end: BadFrame,
		},
		{
			name: "the last word of all", functions: tableI386, regs: at(inPlain, high+0xff0-16),
			memory: words{high + 0xff0 - 4: inOutermost},
			frames: []uint64{inPlain, inOutermost}, end: Complete,
		},
		{
			name: "misaligned", functions: rulesI386(cfaDefCFA, 4, 6, cfaOffset|8, 1), regs: at(inFunction, 0x7000),
			frames: []uint64{inFunction}, end: BadFrame,
		},
		{
			name: "a multiple of four", functions: rulesI386(cfaDefCFA, 4, 12, cfaOffset|8, 1), regs: at(inFunction, 0x7000),
			memory: words{0x7008: inOutermost},
			frames: []uint64{inFunction, inOutermost}, end: Complete,
		},
		{
			name: "frame pointer", functions: tableI386, regs: map[uint64]uint64{8: inJIT, 4: 0x7000, 5: 0x7014}, options: Options{FramePointer: true},
			memory: words{0x7014: 0x7040, 0x7018: inBased, 0x7040: 0, 0x7044: inOutermost},
			frames: []uint64{inJIT, inBased, inOutermost}, end: Complete, pointer: true,
		},
		{
			name: "frame pointer at the end of memory", functions: tableI386, regs: map[uint64]uint64{8: inJIT, 4: 0x7000, 5: 0xfffffffc}, options: Options{FramePointer: true},
			memory: words{0xfffffffc: 0x7040, 0: inOutermost},
			frames: []uint64{inJIT}, end: BadFrame,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, elf.EM_386) })
	}
}

// contextI386 returns words of struct sigcontext_32 at an address. The structure has gs, fs,
// es, ds, edi, esi, ebp, esp, ebx, edx, ecx, eax, trapno, err, eip. The interrupted function is
// at its first instruction.
func contextI386(at uint64) words {
	return words{
		at + 4*6: 0x8000, at + 4*7: 0x6000, at + 4*8: 0x5555, // ebp, esp, ebx
		at + 4*14: moduleAt + 0x2000, // eip: before any push, so that its rules are relative to ebp
		0x8004:    inOutermost, 0x8000: 0,
	}
}

// TestSignalFramesI386 covers both frames, which only the code of the restorer distinguishes.
func TestSignalFramesI386(t *testing.T) {
	mov173 := []byte{0xb8, 0xad, 0, 0, 0, 0xcd, 0x80}
	mov119 := []byte{0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80}
	for name, frame := range map[string]struct {
		code    []byte
		context uint64 // above the stack pointer
		end     End
	}{
		// struct rt_sigframe_ia32 without the return address: sig, two pointers, 128 bytes of
		// siginfo, and uc_flags, uc_link and uc_stack of struct ucontext.
		"with siginfo": {mov173, 3*4 + 128 + 5*4, Complete},
		"old":          {mov119, 4, Complete}, // struct sigframe_ia32: sig
		"other code":   {mov173[:6], 3*4 + 128 + 5*4, NoRule},
	} {
		memory := contextI386(0x7010 + frame.context)
		memory[0x700c] = inJIT
		u := unwinding{
			functions: tableI386, regs: map[uint64]uint64{8: inPlain, 4: 0x7000},
			memory: memory.put(inJIT, slices.Concat(frame.code, []byte{0x90})),
			frames: []uint64{inPlain, inJIT, moduleAt + 0x2000, inOutermost}, end: frame.end,
		}
		if frame.end != Complete {
			u.frames = u.frames[:2]
		}
		t.Run(name, func(t *testing.T) { u.run(t, elf.EM_386) })
	}
}

// TestTrampolineI386 covers a probed function, whose return address is at its stack pointer at
// the entry.
func TestTrampolineI386(t *testing.T) {
	u := unwinding{
		functions: tableI386, regs: map[uint64]uint64{8: inPlain, 4: 0x7000},
		memory:  words{0x700c: 0xffffe000},
		options: Options{Trampoline: func(sp uint64) (uint64, bool) { return inOutermost, sp == 0x700c }},
		frames:  []uint64{inPlain, inOutermost}, end: Complete,
	}
	u.run(t, elf.EM_386)
}

// TestValuesI386 checks that the generic type has 32 bits.
func TestValuesI386(t *testing.T) {
	const low, all = uint64(1) << 31, uint64(1)<<32 - 1
	tests := []struct {
		name string
		code []byte
		want uint64
	}{
		{"addr", code(opAddr, 0x34, 0x12, 0, 0x90), 0x1234},
		{"const1s", code(opConst1s, 0xff), all},
		{"const8u", code(opConst8u, u64(7<<32|5)), 5},
		{"consts", code(opConsts, 0x7e), all - 1},
		{"breg3", code(opBreg0+3, 0xfc, 0x5f), all}, // minus 0x1004
		{"below zero", code(opBreg0+0, 0x80, 0x40), 0x1000 - 0x2000 + 1<<32},
		{"deref", code(opConst2u, 0x08, 0x50, opDeref), 0x0b0a0908},
		{"deref of the last word", code(opConst2u, 0x3c, 0x50, opDeref), 0x3f3e3d3c},
		{"deref_size 2", code(opConst2u, 0x08, 0x50, opDerefSize, 2), 0x0908},
		{"plus", code(opConst4u, 0xff, 0xff, 0xff, 0xff, opLit0+3, opPlus), 2},
		{"plus_uconst", code(opConst4u, 0xff, 0xff, 0xff, 0xff, opPlusUconst, 3), 2},
		{"neg", code(opLit0+1, opNeg), all},
		{"not", code(opLit0, opNot), all},
		{"abs", code(opConst4u, 0xff, 0xff, 0xff, 0xff, opAbs), 1},
		{"div is signed", code(opConst4u, 0xf9, 0xff, 0xff, 0xff, opLit0+2, opDiv), all - 2},
		{"div, the lowest by -1", code(opConst4u, 0, 0, 0, 0x80, opConst1s, 0xff, opDiv), low},
		{"mod is unsigned", code(opConst1s, 0xff, opLit0+10, opMod), 5},
		{"shl", code(opLit0+3, opLit0+31, opShl), low},
		{"shl by 32", code(opLit0+3, opConst1u, 32, opShl), 0},
		{"shr", code(opConst1s, 0xff, opLit0+1, opShr), all >> 1},
		{"shra", code(opConst4u, 0, 0, 0, 0x80, opLit0+30, opShra), all - 1},
		{"lt is signed", code(opConst4u, 0xff, 0xff, 0xff, 0xff, opLit0, opLt), 1},
		{"PLT", code(opBreg0+4, 4, opBreg0+3, 0, opLit0+15, opAnd, opLit0+3, opGe, opLit0+2, opShl, opPlus), 0x100c},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := testFrame(elf.EM_386)
			got, err := f.evaluate(test.code, 99)
			if err != nil || got != test.want {
				t.Errorf("%x = %#x, %v; want %#x", test.code, got, err, test.want)
			}
		})
	}
	if _, err := testFrame(elf.EM_386).evaluate(code(opLit0, opDerefSize, 8)); err == nil {
		t.Error("a value of eight bytes")
	}
}
