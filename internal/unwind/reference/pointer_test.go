package reference

import (
	"debug/elf"
	"testing"
)

func TestFramePointer(t *testing.T) {
	at := func(pc, sp, fp uint64) map[uint64]uint64 { return map[uint64]uint64{16: pc, 7: sp, 6: fp} }
	yes := Options{FramePointer: true}
	jit := uint64(inJIT + 0x20)
	tests := []unwinding{
		{
			name: "through JIT code to rules", functions: rules(), regs: at(inJIT, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0x7040, 0x7028: jit, 0x7040: 0x7100, 0x7048: inBased, 0x7108: inOutermost, 0x7100: 0},
			frames: []uint64{inJIT, jit, inBased, inOutermost}, end: Complete, pointer: true,
		},
		{
			name: "the stack pointer above the return address", functions: rules(), regs: at(inJIT, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0x7777, 0x7028: inPlain, 0x7048: inOutermost},
			frames: []uint64{inJIT, inPlain, inOutermost}, end: Complete, pointer: true,
		},
		{
			name: "not where rules are", functions: rules(), regs: at(inPlain, 0x7000, 0x7100), options: yes,
			memory: words{0x7018: inOutermost, 0x7100: 0x7200, 0x7108: inBased},
			frames: []uint64{inPlain, inOutermost}, end: Complete,
		},
		{
			name: "not where rules are bad", functions: rules(cfaDefCFA, 7), regs: at(inFunction, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0, 0x7028: inOutermost},
			frames: []uint64{inFunction}, end: BadRule,
		},
		{
			name: "not asked for", functions: rules(), regs: at(inJIT, 0x7000, 0x7020),
			memory: words{0x7020: 0, 0x7028: inOutermost},
			frames: []uint64{inJIT}, end: NoRule,
		},
		{
			name: "other registers are lost", functions: rules(cfaDefCFA, 3, 8, cfaOffset|16, 1), options: yes,
			regs:   map[uint64]uint64{16: inJIT, 7: 0x7000, 6: 0x7020, 3: 0x7100},
			memory: words{0x7020: 0x7040, 0x7028: inFunction, 0x7100: inOutermost},
			frames: []uint64{inJIT, inFunction}, end: BadRule, pointer: true, err: errUnknown,
		},
		{
			name: "zero frame pointer ends a stack", functions: rules(), regs: at(inJIT, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0, 0x7028: jit},
			frames: []uint64{inJIT, jit}, end: Complete, pointer: true,
		},
		{
			name: "zero return address ends a stack", functions: rules(), regs: at(inJIT, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0x7040, 0x7028: jit, 0x7040: 0x7060, 0x7048: 0},
			frames: []uint64{inJIT, jit}, end: Complete, pointer: true,
		},
		{
			name: "zero frame pointer of the first frame", functions: rules(), regs: at(inJIT, 0x7000, 0), options: yes,
			frames: []uint64{inJIT}, end: BadFrame,
		},
		{
			name: "zero return address of the first frame", functions: rules(), regs: at(inJIT, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0x7040, 0x7028: 0},
			frames: []uint64{inJIT}, end: BadFrame,
		},
		{
			name: "below the stack pointer", functions: rules(), regs: at(inJIT, 0x7000, 0x6ff8), options: yes,
			memory: words{0x6ff8: 0x7040, 0x7000: inOutermost},
			frames: []uint64{inJIT}, end: BadFrame,
		},
		{
			name: "to itself", functions: rules(), regs: at(inJIT, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0x7020, 0x7028: jit},
			frames: []uint64{inJIT, jit}, end: BadFrame, pointer: true,
		},
		{
			name: "misaligned", functions: rules(), regs: at(inJIT, 0x7000, 0x7021), options: yes,
			memory: words{0x7021: 0x7040, 0x7029: inOutermost},
			frames: []uint64{inJIT}, end: BadFrame,
		},
		{
			name: "at the end of memory", functions: rules(), regs: at(inJIT, 0x7000, 0xfffffffffffffff8), options: yes,
			memory: words{0xfffffffffffffff8: 0x7040, 0: inOutermost},
			frames: []uint64{inJIT}, end: BadFrame,
		},
		{
			name: "not readable", functions: rules(), regs: at(inJIT, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0x7040},
			frames: []uint64{inJIT}, end: Unreadable, err: errUnreadable,
		},
		{
			name: "unknown", functions: rules(), regs: registersAt(inJIT, 0x7000), options: yes,
			frames: []uint64{inJIT}, end: NoRule, err: errUnknown,
		},
		{
			name: "code that is not mapped", functions: rules(), regs: at(0x5000000, 0x7000, 0x7020), options: yes,
			memory: words{0x7020: 0, 0x7028: inOutermost},
			frames: []uint64{0x5000000, inOutermost}, end: Complete, pointer: true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, elf.EM_X86_64) })
	}
}

// TestTrampoline has functions that return to a return probe's stub, some found by rules and
// some through the frame pointer.
func TestTrampoline(t *testing.T) {
	const stub = 0x7fffffffe000
	truth := map[uint64]uint64{0x7018: inJIT, 0x7048: inOutermost}
	asked := 0
	u := unwinding{
		functions: rules(), regs: map[uint64]uint64{16: inPlain, 7: 0x7000, 6: 0x7040},
		memory: words{0x7018: stub, 0x7040: 0x7080, 0x7048: stub},
		options: Options{FramePointer: true, Trampoline: func(sp uint64) (uint64, bool) {
			asked++
			v, ok := truth[sp]
			return v, ok
		}},
		frames: []uint64{inPlain, inJIT, inOutermost}, end: Complete, pointer: true,
	}
	u.run(t, elf.EM_X86_64)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	delete(truth, 0x7048)
	u.options.FramePointer, u.options.Depth = false, 3
	u.frames, u.end, u.pointer = []uint64{inPlain, inJIT}, NoRule, false
	u.run(t, elf.EM_X86_64)
}
