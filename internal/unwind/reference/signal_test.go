package reference

import (
	"debug/elf"
	"encoding/binary"
	"maps"
	"testing"
)

// put writes code into memory so that it can be read at any of its addresses.
func (w words) put(addr uint64, code []byte) words {
	all := maps.Clone(w)
	if all == nil {
		all = words{}
	}
	for i := range code {
		var word [8]byte
		copy(word[:], code[i:])
		all[addr+uint64(i)] = binary.LittleEndian.Uint64(word[:])
	}
	return all
}

// interrupted returns the words of a signal frame of amd64 at sp: struct ucontext, whose gregs
// are at 40. The interrupted function is at its first instruction, so only a lookup of exactly
// that pc finds it.
func interrupted(sp uint64) words {
	return words{
		sp + 40 + 8*10: 0x8000,            // rbp
		sp + 40 + 8*11: 0x5555,            // rbx
		sp + 40 + 8*15: 0x6000,            // rsp: another stack, below this one
		sp + 40 + 8*16: moduleAt + 0x1000, // rip
		0x6018:         inOutermost,
	}
}

// glibc's rules for the restorer, as far as the test needs them: everything is in the saved
// registers above rsp.
var restorerRules = []byte{
	cfaDefCFAExpr, 4, opBreg0 + 7, 0xa0, 1, opDeref,
	cfaExpression, 7, 3, opBreg0 + 7, 0xa0, 1,
	cfaExpression, 16, 3, opBreg0 + 7, 0xa8, 1,
}

func signalFunction(rules ...byte) []function {
	return []function{plain, based, outermost, {start: 0x4000, end: 0x4100, rules: rules, signal: true}}
}

func TestSignalFrames(t *testing.T) {
	whole := []uint64{inPlain, inFunction, moduleAt + 0x1000, inOutermost}
	// A handler that has returned to the restorer's second instruction.
	toRestorer := interrupted(0x7020)
	toRestorer[0x7018] = inFunction
	tests := []unwinding{
		{
			name: "by rules", functions: signalFunction(restorerRules...), memory: toRestorer,
			frames: whole, end: Complete,
		},
		{
			name: "by layout, known by the code", functions: rules(), memory: toRestorer.put(inFunction, restorersAMD64[0].code),
			frames: whole, end: Complete,
		},
		{
			name: "by layout rather than by a plain function's rules", functions: rules(cfaDefCFA, 7, 8, cfaOffset|16, 1), memory: toRestorer.put(inFunction, restorersAMD64[0].code),
			frames: whole, end: Complete,
		},
		{
			name: "other code", functions: rules(), memory: toRestorer.put(inFunction, []byte{0x48, 0xc7, 0xc0, 14, 0, 0, 0, 0x0f, 0x05}),
			frames: whole[:2], end: BadRule,
		},
		{
			name: "saved pc not readable", functions: rules(), memory: words{0x7018: inFunction}.put(inFunction, restorersAMD64[0].code),
			frames: whole[:2], end: Unreadable, err: errUnreadable,
		},
		{
			name: "without the mark, the way back is one from a call", functions: rules(restorerRules...), memory: toRestorer,
			frames: whole[:2], end: BadFrame, // the other stack is below
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.regs = registersAt(inPlain, 0x7000)
			test.run(t, elf.EM_X86_64)
		})
	}
}

// TestSignalTrampoline checks that an interrupted pc is not taken for a return address that a
// probe has replaced, whatever is below the interrupted function's stack pointer.
func TestSignalTrampoline(t *testing.T) {
	memory := interrupted(0x7020)
	memory[0x7018] = inFunction
	u := unwinding{
		functions: signalFunction(restorerRules...), regs: registersAt(inPlain, 0x7000), memory: memory,
		options: Options{Trampoline: func(sp uint64) (uint64, bool) { return 0x1234, sp == 0x6000-8 }},
		frames:  []uint64{inPlain, inFunction, moduleAt + 0x1000, inOutermost}, end: Complete,
	}
	u.run(t, elf.EM_X86_64)
}

// TestSavedRegisters compares the layout with the order of struct sigcontext.
func TestSavedRegisters(t *testing.T) {
	order := []uint64{8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16} // r8 ... r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip
	for i, n := range order {
		if got, want := restorersAMD64[0].saved(n), uint64(40+8*i); got != want {
			t.Errorf("register %d at %d, want %d", n, got, want)
		}
	}
	for n, want := range map[uint64]uint64{0: 312, 29: 544, 30: 552, 31: 560, 32: 568} {
		if got := restorersARM64[0].saved(n); got != want {
			t.Errorf("arm64: register %d at %d, want %d", n, got, want)
		}
	}
}
