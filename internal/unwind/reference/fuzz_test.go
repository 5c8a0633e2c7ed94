package reference

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/trace"
)

func FuzzExpression(f *testing.F) {
	for _, seed := range [][]byte{
		code(opBreg0+7, 8, opBreg0+6, 0, opLit0+15, opAnd, opLit0+11, opGe, opLit0+3, opShl, opPlus), // of a PLT
		code(opLit0+10, opLit0+1, opMinus, opDup, opBra, 0xfa, 0xff),
		code(opConst2u, 0x08, 0x50, opDeref, opConst2u, 0x3c, 0x50, opDerefSize, 4, opDiv, opPick, 0),
		code(opConsts, 0xc0, 0xbb, 0x78, opLit0+7, opRot, opOver, opSkip, 0, 0),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_386} {
			fuzzExpression(t, machine, code)
		}
	})
}

func fuzzExpression(t *testing.T, machine elf.Machine, code []byte) {
	got, err := testFrame(machine).evaluate(code, 99)
	var syntax *trace.SyntaxError
	switch {
	case errors.As(err, &syntax):
		if syntax.Offset < 0 || syntax.Offset > int64(len(code)) {
			t.Errorf("%v in %d bytes", err, len(code))
		}
		return
	case errors.Is(err, errUnknown), errors.Is(err, errUnreadable):
		return
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	}
	// No-ops change nothing, and branches are relative.
	longer := append([]byte{opLit0, opDrop, opNop}, code...)
	again, err := testFrame(machine).evaluate(append(longer, opDup, opDrop), 99)
	if err == nil && again != got || err != nil && !errors.Is(err, trace.ErrLimit) {
		t.Errorf("%#x, then %#x, %v", got, again, err)
	}
	if got != machines[machine].wrap(got) {
		t.Errorf("%#x is more than a word", got)
	}
}

// hostile is an input of FuzzUnwind: memory from 0x7000 on, to which the registers point, and
// an .eh_frame.
type hostile struct {
	machine       elf.Machine
	depth         int
	pointer, here bool
	memory        []byte
	index         *cfi.Index
}

func (h *hostile) unwind(depth int) Stack {
	var regs Registers
	for n := range uint64(cfi.Registers) {
		regs.Set(n, 0x7000+8*n)
	}
	m := machines[h.machine]
	regs.Set(m.sp, 0x7000)
	regs.Set(m.pc, inPlain)
	space, _ := NewSpace([]Mapping{{moduleAt, moduleAt + 0x100000, Module{Index: h.index, Bias: moduleAt}}})
	return Unwind(regs, Raw{Addr: 0x7000, Data: h.memory}, space, Options{
		Machine: h.machine, Depth: depth, FramePointer: h.pointer, Interrupted: h.here,
	})
}

func FuzzUnwind(f *testing.F) {
	memory := make([]byte, 256)
	for i, v := range []uint64{0, inFunction, 0x7080, inPlain, 0, 0, 0x7060, inFunction, inBased, 0, inPlain, 0x7080, inOutermost} {
		binary.LittleEndian.PutUint64(memory[8*i:], v)
	}
	for _, rules := range [][]byte{restorerRules, {cfaDefCFA, 7, 32, cfaOffset | 16, 1}, {cfaDefCFA, 31, 32, cfaNegateRA, cfaOffset | 30, 1}} {
		for _, signal := range []bool{false, true} {
			var data []byte
			for _, g := range []function{plain, based, outermost, {start: 0x4000, end: 0x4100, rules: rules, signal: signal}} {
				data = append(data, g.section(cfi.AMD64).Data...)
			}
			f.Add(data, memory, uint8(16), uint8(1), true, signal)
			f.Add(data, memory, uint8(3), uint8(0), false, signal)
		}
	}
	var data []byte
	for _, g := range tableI386 {
		data = append(data, g.section(cfi.I386).Data...)
	}
	f.Add(data, memory, uint8(16), uint8(2), true, false)
	f.Fuzz(func(t *testing.T, data, memory []byte, depth, machine uint8, pointer, here bool) {
		all := []elf.Machine{elf.EM_AARCH64, elf.EM_X86_64, elf.EM_386}
		h := hostile{machine: all[machine%3], depth: int(depth), pointer: pointer, here: here, memory: memory}
		s := &cfi.Section{Machine: cfi.MachineOf(h.machine), Data: data, EH: true, Order: binary.LittleEndian}
		h.index, _ = cfi.NewIndex(s) // with the entries that are not broken
		checkStack(t, &h)
	})
}

// checkStack checks what must be true of each stack.
func checkStack(t *testing.T, h *hostile) {
	t.Helper()
	got := h.unwind(h.depth)
	if len(got.Frames) > h.depth {
		t.Fatalf("%d frames of %d", len(got.Frames), h.depth)
	}
	if got.End < Complete || got.End > BadRule {
		t.Errorf("end %v", got.End)
	}
	if whole := got.End == Complete || got.End == Truncated; whole != (got.Err == nil) {
		t.Errorf("%v, but error %v", got.End, got.Err)
	}
	if got.End == Truncated && len(got.Frames) != h.depth {
		t.Errorf("truncated after %d frames of %d", len(got.Frames), h.depth)
	}
	if got.FramePointer && !h.pointer {
		t.Error("a frame-pointer step without leave")
	}
	if n := len(got.Frames); n > 0 && got.Frames[0] != inPlain || slices.Contains(got.Frames, 0) {
		t.Errorf("frames %#x", got.Frames)
	}
	for n := range len(got.Frames) {
		part := h.unwind(n)
		if part.End != Truncated || !slices.Equal(part.Frames, got.Frames[:n]) {
			t.Errorf("depth %d: %#x, %v; whole %#x", n, part.Frames, part.End, got.Frames)
		}
	}
}
