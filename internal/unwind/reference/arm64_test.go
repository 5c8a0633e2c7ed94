package reference

import (
	"debug/elf"
	"testing"
)

// Functions of arm64 tests. x29 and x30 are saved at the bottom of a frame.
var (
	framed   = function{start: 0x1000, end: 0x1100, rules: []byte{cfaDefCFA, 31, 32, cfaOffset | 29, 4, cfaOffset | 30, 3}}
	leaf     = function{start: 0x2000, end: 0x2100, rules: []byte{cfaDefCFA, 31, 0}}
	first    = function{start: 0x3000, end: 0x3100, rules: []byte{cfaDefCFA, 31, 0, cfaUndefined, 30}}
	armTable = []function{framed, leaf, first}
)

const (
	inFramed = inPlain
	inLeaf   = inBased
)

func TestARM64(t *testing.T) {
	const signature = 0x002f<<48 | 0xff<<56 // of an address with bit 55 clear
	exact := Options{Interrupted: true}
	signed := func(code ...byte) []function {
		return append(armTable, function{start: 0x4000, end: 0x4100, rules: code})
	}
	pointed := signed(cfaDefCFA, 29, 16, cfaOffset|29, 2, cfaOffset|30, 1) // CFA=x29+16
	tests := []unwinding{
		{
			name: "to the outermost", functions: armTable, regs: map[uint64]uint64{32: inFramed, 31: 0x7000},
			memory: words{0x7000: 0x7020, 0x7008: inFramed, 0x7020: 0, 0x7028: inOutermost},
			frames: []uint64{inFramed, inFramed, inOutermost}, end: Complete,
		},
		{
			name: "interrupted leaf", functions: armTable, regs: map[uint64]uint64{32: inLeaf, 31: 0x7000, 30: inFramed}, options: exact,
			memory: words{0x7000: 0, 0x7008: inOutermost},
			frames: []uint64{inLeaf, inFramed, inOutermost}, end: Complete,
		},
		{
			// x30 holds what the returned call left in it.
			name: "leaf that has called", functions: armTable, regs: map[uint64]uint64{32: inLeaf, 31: 0x7000, 30: inFramed},
			frames: []uint64{inLeaf}, end: BadFrame,
		},
		{
			name: "caller that did not save x30", functions: signed(cfaDefCFA, 31, 16), regs: map[uint64]uint64{32: inFunction, 31: 0x7000, 30: inFramed},
			frames: []uint64{inFunction}, end: BadRule, err: errUnknown,
		},
		{
			name: "caller's caller that did not save x30", functions: signed(cfaDefCFA, 31, 16), regs: map[uint64]uint64{32: inLeaf, 31: 0x7000, 30: inFunction}, options: exact,
			frames: []uint64{inLeaf, inFunction}, end: BadRule, err: errUnknown,
		},
		{
			name: "signed return address", functions: signed(cfaNegateRA, cfaDefCFA, 31, 32, cfaOffset|29, 4, cfaOffset|30, 3), regs: map[uint64]uint64{32: inFunction, 31: 0x7000},
			memory: words{0x7000: 0x7020, 0x7008: inOutermost | signature&^(1<<55)},
			frames: []uint64{inFunction, inOutermost}, end: Complete,
		},
		{
			name: "signed return address in x30", functions: signed(cfaNegateRA, cfaDefCFA, 31, 0), regs: map[uint64]uint64{32: inFunction, 31: 0x7000, 30: inOutermost | 0x7f<<48}, options: exact,
			frames: []uint64{inFunction, inOutermost}, end: Complete,
		},
		{
			name: "signature that no rule announces", functions: armTable, regs: map[uint64]uint64{32: inFramed, 31: 0x7000},
			memory: words{0x7000: 0x7020, 0x7008: inOutermost | 0x7f<<48},
			frames: []uint64{inFramed, inOutermost | 0x7f<<48}, end: Unmapped,
		},
		{
			name: "signed and signed again", functions: signed(cfaDefCFA, 31, 0, cfaNegateRA, cfaAdvance|8, cfaNegateRA), regs: map[uint64]uint64{32: inFunction, 31: 0x7000, 30: inOutermost | 0x7f<<48}, options: exact,
			frames: []uint64{inFunction, inOutermost | 0x7f<<48}, end: Unmapped,
		},
		{
			// The end of the frame of the code without a rule is unknown, so only rules that
			// are relative to the frame pointer can be used after it.
			name: "frame pointer", functions: pointed, regs: map[uint64]uint64{32: inJIT, 31: 0x7000, 29: 0x7010}, options: Options{FramePointer: true},
			memory: words{0x7010: 0x7040, 0x7018: inFunction, 0x7040: 0, 0x7048: inOutermost},
			frames: []uint64{inJIT, inFunction, inOutermost}, end: Complete, pointer: true,
		},
		{
			name: "frame pointer to a rule from the stack pointer", functions: armTable, regs: map[uint64]uint64{32: inJIT, 31: 0x7000, 29: 0x7010}, options: Options{FramePointer: true},
			memory: words{0x7010: 0x7060, 0x7018: inFramed, 0x7060: 0, 0x7068: inOutermost},
			frames: []uint64{inJIT, inFramed, inOutermost}, end: Complete, pointer: true,
		},
		{
			name: "frame pointer to a function that saves none", functions: signed(cfaDefCFA, 31, 16, cfaOffset|30, 1), regs: map[uint64]uint64{32: inJIT, 31: 0x7000, 29: 0x7010}, options: Options{FramePointer: true},
			memory: words{0x7010: 0x7060, 0x7018: inFunction, 0x7028: inOutermost},
			frames: []uint64{inJIT, inFunction}, end: BadRule, pointer: true,
		},
		{
			name: "frame pointer to a signature", functions: pointed, regs: map[uint64]uint64{32: inJIT, 31: 0x7000, 29: 0x7010}, options: Options{FramePointer: true},
			memory: words{0x7010: 0x7040, 0x7018: inFunction | 0x7f<<48, 0x7040: 0, 0x7048: inOutermost},
			frames: []uint64{inJIT, inFunction, inOutermost}, end: Complete, pointer: true,
		},
		{
			name: "addresses of 39 bits", functions: signed(cfaNegateRA, cfaDefCFA, 31, 0), regs: map[uint64]uint64{32: inFunction, 31: 0x7000, 30: inOutermost | 0x7fff<<39}, options: Options{Interrupted: true, AddressBits: 39},
			frames: []uint64{inFunction, inOutermost}, end: Complete,
		},
		{
			// The rules of the vDSO restore the interrupted function's x30.
			name: "signal frame", functions: append(armTable, function{start: 0x4000, end: 0x4100, signal: true, rules: []byte{cfaDefCFA, 29, 0, cfaOffset | 30, 1}}),
			regs:   map[uint64]uint64{32: inFramed, 31: 0x7000},
			memory: words{0x7000: 0x9000, 0x7008: inFunction, 0x7020 + 312 + 8*30: inFramed, 0x7020 + 560: 0x6000, 0x7020 + 568: moduleAt + 0x2000, 0x6008: inOutermost},
			frames: []uint64{inFramed, inFunction, moduleAt + 0x2000, inFramed, inOutermost}, end: Complete,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, elf.EM_AARCH64) })
	}
}

// TestTrampolineARM64 covers a probed function, which the kernel identifies by the stack
// pointer at its entry, where x30 is not yet saved.
func TestTrampolineARM64(t *testing.T) {
	u := unwinding{
		functions: armTable, regs: map[uint64]uint64{32: inFramed, 31: 0x7000},
		memory: words{0x7000: 0, 0x7008: 0x7fffffffe000},
		options: Options{Trampoline: func(sp uint64) (uint64, bool) {
			return inOutermost, sp == 0x7020
		}},
		frames: []uint64{inFramed, inOutermost}, end: Complete,
	}
	u.run(t, elf.EM_AARCH64)
}

func TestUnsigned(t *testing.T) {
	tests := []struct {
		address, want uint64
		bits          int
	}{
		{0x0000_5555_1234_5678, 0x0000_5555_1234_5678, 48},
		{0xff2f_5555_1234_5678, 0x0000_5555_1234_5678, 48},
		{0xff2f_5555_1234_5678, 0x0000_0055_1234_5678, 39},
		{0xff75_5555_1234_5678, 0x0005_5555_1234_5678, 52},
		{0x0080_5555_1234_5678, 0xffff_5555_1234_5678, 48},
		{0xffff_8000_1234_5678, 0xffff_8000_1234_5678, 48},
	}
	for _, test := range tests {
		if got := unsigned(test.address, test.bits); got != test.want {
			t.Errorf("%#x: %#x, want %#x", test.address, got, test.want)
		}
	}
}
