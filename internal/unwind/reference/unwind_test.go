package reference

import (
	"debug/elf"
	"errors"
	"testing"

	"rtrace-bpf/trace"
)

// Functions of amd64 tests: each takes 0x100 bytes.
var (
	// A frame of 32 bytes with the return address on top and rbx below.
	plain = function{start: 0x1000, end: 0x1100, rules: []byte{cfaDefCFA, 7, 32, cfaOffset | 16, 1, cfaOffset | 3, 2}}
	// The same, relative to rbp, which is saved.
	based = function{start: 0x2000, end: 0x2100, rules: []byte{cfaDefCFA, 6, 16, cfaOffset | 16, 1, cfaOffset | 6, 2}}
	// The outermost one.
	outermost = function{start: 0x3000, end: 0x3100, rules: []byte{cfaDefCFA, 7, 8, cfaUndefined, 16}}
)

const (
	inPlain     = moduleAt + 0x1050
	inBased     = moduleAt + 0x2050
	inOutermost = moduleAt + 0x3050
	inFunction  = moduleAt + 0x4050 // of the test
	inJIT       = 0x9000010
)

func rules(code ...byte) []function {
	return []function{plain, based, outermost, {start: 0x4000, end: 0x4100, rules: code}}
}

func registersAt(pc, sp uint64) map[uint64]uint64 { return map[uint64]uint64{16: pc, 7: sp} }

var unwindings = []unwinding{
	{
		name: "to the outermost", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: inPlain, 0x7038: inOutermost},
		frames: []uint64{inPlain, inPlain, inOutermost}, end: Complete,
	},
	{
		name: "a base that is restored on the way", functions: rules(cfaDefCFA, 7, 32, cfaOffset|16, 1, cfaOffset|6, 2), regs: registersAt(inFunction, 0x7000),
		memory: words{0x7018: inBased, 0x7010: 0x7100, 0x7108: inOutermost, 0x7100: 0},
		frames: []uint64{inFunction, inBased, inOutermost}, end: Complete,
	},
	{
		// The caller's call was the last instruction of its function.
		name: "call at the end of a function", functions: rules(), regs: registersAt(moduleAt+0x1100, 0x7000),
		memory: words{0x7018: moduleAt + 0x3100},
		frames: []uint64{moduleAt + 0x1100, moduleAt + 0x3100}, end: Complete,
	},
	{
		name: "interrupted at the start of a function", functions: rules(), regs: registersAt(moduleAt+0x1000, 0x7000),
		memory: words{0x7018: inOutermost}, options: Options{Interrupted: true},
		frames: []uint64{moduleAt + 0x1000, inOutermost}, end: Complete,
	},
	{
		name: "the start of a function is no place to return to", functions: rules(), regs: registersAt(moduleAt+0x1000, 0x7000),
		frames: []uint64{moduleAt + 0x1000}, end: NoRule,
	},
	{
		name: "zero return address", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: inPlain, 0x7038: 0},
		frames: []uint64{inPlain, inPlain}, end: Complete,
	},
	{
		name: "zero return address of the first frame", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: 0},
		frames: []uint64{inPlain}, end: BadFrame,
	},
	{
		name: "more frames than asked for", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: inPlain, 0x7038: inOutermost}, options: Options{Depth: 2},
		frames: []uint64{inPlain, inPlain}, end: Truncated,
	},
	{
		name: "exactly as many frames as asked for", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: inPlain, 0x7038: inOutermost}, options: Options{Depth: 3},
		frames: []uint64{inPlain, inPlain, inOutermost}, end: Complete,
	},
	{
		name: "nothing mapped", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: 0x123456789},
		frames: []uint64{inPlain, 0x123456789}, end: Unmapped,
	},
	{
		name: "no tables", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: inJIT},
		frames: []uint64{inPlain, inJIT}, end: NoRule,
	},
	{
		name: "return address not readable", functions: rules(), regs: registersAt(inPlain, 0x7000),
		memory: words{0x7018: inPlain},
		frames: []uint64{inPlain, inPlain}, end: Unreadable, err: errUnreadable,
	},
	{
		name: "return address in a register, as in vfork", functions: rules(cfaDefCFA, 7, 0, cfaRegister, 16, 5),
		regs: map[uint64]uint64{16: inFunction, 7: 0x7000, 5: inOutermost}, options: Options{Interrupted: true},
		frames: []uint64{inFunction, inOutermost}, end: Complete,
	},
	{
		name: "return address in an unknown register", functions: rules(cfaDefCFA, 7, 8, cfaRegister, 16, 5), regs: registersAt(inFunction, 0x7000),
		frames: []uint64{inFunction}, end: BadRule, err: errUnknown,
	},
	{
		name: "no rule for the return address", functions: rules(cfaDefCFA, 7, 8), regs: registersAt(inFunction, 0x7000),
		frames: []uint64{inFunction}, end: BadRule, err: errUnknown,
	},
	{
		name: "return address in a column that is not followed", functions: []function{{start: 0x4000, end: 0x4100, rules: []byte{cfaDefCFA, 7, 8}, returns: 40}},
		regs: registersAt(inFunction, 0x7000), frames: []uint64{inFunction}, end: BadRule, err: errors.ErrUnsupported,
	},
	{
		name: "unknown base", functions: rules(), regs: registersAt(inBased, 0x7000),
		frames: []uint64{inBased}, end: BadRule, err: errUnknown,
	},
	{
		name: "base that was lost on the way", functions: rules(cfaDefCFA, 7, 8, cfaOffset|16, 1, cfaUndefined, 6),
		regs:   map[uint64]uint64{16: inFunction, 7: 0x7000, 6: 0x7100},
		memory: words{0x7000: inBased, 0x7108: inOutermost, 0x7100: 0},
		frames: []uint64{inFunction, inBased}, end: BadRule, err: errUnknown,
	},
	{
		name: "base whose place cannot be read", functions: rules(cfaDefCFA, 7, 32, cfaOffset|16, 1, cfaOffset|6, 2),
		regs:   map[uint64]uint64{16: inFunction, 7: 0x7000, 6: 0x7100},
		memory: words{0x7018: inBased, 0x7108: inOutermost, 0x7100: 0},
		frames: []uint64{inFunction, inBased}, end: BadRule, err: errUnknown,
	},
	{
		name: "base with the rule same value", functions: rules(cfaDefCFA, 7, 8, cfaOffset|16, 1, cfaSameValue, 6),
		regs:   map[uint64]uint64{16: inFunction, 7: 0x7000, 6: 0x7100},
		memory: words{0x7000: inBased, 0x7108: inOutermost, 0x7100: 0},
		frames: []uint64{inFunction, inBased, inOutermost}, end: Complete,
	},
	{
		name: "base that leads downwards", functions: rules(cfaDefCFA, 7, 8, cfaOffset|16, 1, cfaValOffset, 6, 0x60), // CFA-0x300
		regs:   registersAt(inFunction, 0x7000),
		memory: words{0x7000: inBased, 0x6d10: inOutermost}, // at CFA-0x300+8
		frames: []uint64{inFunction, inBased}, end: BadFrame,
	},
	{
		name: "expressions", functions: rules(cfaDefCFAExpr, 2, opBreg0+7, 16,
			cfaExpression, 16, 4, opLit0+8, opMinus, opDup, opDrop, // on the CFA
			cfaValExpr, 6, 4, opConst1u, 0x70, opPlus, opNop),
		regs:   registersAt(inFunction, 0x7000),
		memory: words{0x7008: inBased, 0x7088: inOutermost, 0x7080: 0},
		frames: []uint64{inFunction, inBased, inOutermost}, end: Complete,
	},
	{
		name: "expression that breaks", functions: rules(cfaDefCFAExpr, 1, opPlus), regs: registersAt(inFunction, 0x7000),
		frames: []uint64{inFunction}, end: BadRule, err: trace.ErrMalformed,
	},
	{
		name: "empty expression", functions: rules(cfaDefCFAExpr, 0), regs: registersAt(inFunction, 0x7000),
		frames: []uint64{inFunction}, end: BadRule, err: trace.ErrMalformed,
	},
	{
		name: "expression that breaks for another register", functions: rules(cfaDefCFA, 7, 8, cfaOffset|16, 1, cfaValExpr, 3, 1, 0xff), regs: registersAt(inFunction, 0x7000),
		memory: words{0x7000: inOutermost},
		frames: []uint64{inFunction}, end: BadRule, err: trace.ErrUnsupported,
	},
	{
		name: "expression that reads nothing", functions: rules(cfaDefCFAExpr, 3, opBreg0+7, 0, opDeref), regs: registersAt(inFunction, 0x7000),
		frames: []uint64{inFunction}, end: Unreadable, err: errUnreadable,
	},
	{
		name: "broken instructions", functions: rules(cfaDefCFA, 7), regs: registersAt(inFunction, 0x7000),
		frames: []uint64{inFunction}, end: BadRule, err: trace.ErrTruncated,
	},
	{
		name: "frame that does not grow", functions: rules(cfaDefCFA, 7, 0, cfaOffset|16, 1), regs: registersAt(inFunction, 0x7000),
		memory: words{0x6ff8: inFunction},
		frames: []uint64{inFunction}, end: BadFrame,
	},
	{
		name: "frame that is misaligned", functions: rules(cfaDefCFA, 7, 12, cfaOffset|16, 1), regs: registersAt(inFunction, 0x7000),
		memory: words{0x7004: inFunction},
		frames: []uint64{inFunction}, end: BadFrame,
	},
	{
		name: "stack pointer that is lost", functions: rules(cfaDefCFA, 7, 8, cfaOffset|16, 1, cfaUndefined, 7), regs: registersAt(inFunction, 0x7000),
		memory: words{0x7000: inOutermost},
		frames: []uint64{inFunction}, end: BadRule, err: errUnknown,
	},
	{
		name: "stack pointer with a rule", functions: rules(cfaDefCFA, 7, 8, cfaOffset|16, 1, cfaValOffset, 7, 0x7e), regs: registersAt(inFunction, 0x7000),
		memory: words{0x7000: inPlain, 0x7008 - 8*0x7e + 24: inOutermost},
		frames: []uint64{inFunction, inPlain, inOutermost}, end: Complete,
	},
	{
		name: "pc unknown", functions: rules(), regs: map[uint64]uint64{7: 0x7000}, end: BadRule, err: errUnknown,
	},
	{
		name: "stack pointer unknown", functions: rules(), regs: map[uint64]uint64{16: inPlain}, end: BadRule, err: errUnknown,
	},
}

func TestUnwind(t *testing.T) {
	for _, test := range unwindings {
		t.Run(test.name, func(t *testing.T) { test.run(t, elf.EM_X86_64) })
	}
}

func TestOtherMachine(t *testing.T) {
	if got := Unwind(Registers{}, words{}, new(Space), Options{Machine: elf.EM_ARM, Depth: 5}); got.End != BadRule || !errors.Is(got.Err, errors.ErrUnsupported) {
		t.Errorf("%+v", got)
	}
}
