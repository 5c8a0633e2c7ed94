package unwind

import (
	"fmt"
	"testing"
)

// fields unpacks a rule like the macros of bpf/tables.h.
func fields(r uint64, word int64) (kind, fp, ra, register uint32, gap, slot, cfa, offset, addend int64) {
	kind, fp, ra, register = uint32(r)&0xf, uint32(r)>>4&7, uint32(r)>>7&3, uint32(r)>>9&0x1f
	gap = int64(r<<50) >> 59 * word
	slot = int64(r<<24) >> 40 * word
	cfa = int64(r) >> 40 * word
	offset = int64(r<<12) >> 52 * word
	addend = int64(r) >> 52 * word
	return kind, fp, ra, register, gap, slot, cfa, offset, addend
}

// unpacked returns the frame of a rule as the program in the kernel reads it.
func unpacked(r Rule, word int64) Frame {
	kind, fp, ra, register, gap, slot, cfa, offset, addend := fields(uint64(r), word)
	f := Frame{Kind: Kind(kind), FP: FPRule(fp), RA: RARule(ra), Slot: slot}
	if f.Kind == Reg {
		f.Register = uint8(register)
	} else {
		f.Gap = gap
	}
	switch f.Kind {
	case SPDeref, FPDeref:
		f.Offset, f.Addend = offset, addend
	case PLT:
		f.Slot /= word
	default:
		f.CFA = cfa
	}
	return f
}

func TestPack(t *testing.T) {
	const max24, max12 = (1<<23 - 1) * 8, (1<<11 - 1) * 8
	tests := []struct {
		frame Frame
		want  string
	}{
		{Frame{Kind: SP, CFA: 8}, "cfa=sp+8"},
		{Frame{Kind: SP, CFA: 0, RA: RALink}, "cfa=sp+0 ra=link"},
		{Frame{Kind: FP, CFA: 16, FP: FPAtCFA, Slot: -16}, "cfa=fp+16 fp=[cfa-16]"},
		{Frame{Kind: FP, CFA: 32, FP: FPAtCFA, Slot: -32, RA: RAAfterFP}, "cfa=fp+32 fp=[cfa-32] ra=after fp"},
		{Frame{Kind: SP, CFA: 16, Slot: -16, RA: RAAtCFA}, "cfa=sp+16 ra=[cfa-16]"},
		{Frame{Kind: SP, CFA: 5152, FP: FPAtCFA, Slot: -32, RA: RAAfterFP, Gap: 8}, "cfa=sp+5152 fp=[cfa-32] ra=after fp+8"},
		{Frame{Kind: SP, CFA: 200, FP: FPAtCFA, Slot: -160, RA: RAAfterFP, Gap: 15 * 8}, "cfa=sp+200 fp=[cfa-160] ra=after fp+120"},
		{Frame{Kind: FP, CFA: 200, FP: FPAtCFA, Slot: -8, RA: RAAfterFP, Gap: -16 * 8}, "cfa=fp+200 fp=[cfa-8] ra=after fp-128"},
		{Frame{Kind: SPDeref, Offset: 8, Addend: 8, FP: FPAtCFA, Slot: -32, RA: RAAfterFP, Gap: -16}, "cfa=*(sp+8)+8 fp=[cfa-32] ra=after fp-16"},
		{Frame{Kind: SP, CFA: max24, FP: FPAtCFA, Slot: -max24 - 8}, "cfa=sp+67108856 fp=[cfa-67108864]"},
		{Frame{Kind: SP, CFA: -max24 - 8, FP: FPAtFP, Slot: max24}, "cfa=sp-67108864 fp=[fp+67108856]"},
		{Frame{Kind: FPDeref, Offset: -8, FP: FPAtFP}, "cfa=*(fp-8)+0 fp=[fp+0]"},
		{Frame{Kind: SPDeref, Offset: max12, Addend: -max12 - 8, FP: FPAtCFA, Slot: -8}, "cfa=*(sp+16376)-16384 fp=[cfa-8]"},
		{Frame{Kind: SPDeref, Offset: -max12 - 8, Addend: max12, FP: FPUnknown}, "cfa=*(sp-16384)+16376 fp=?"},
		{Frame{Kind: Reg, Register: 31, CFA: -8}, "cfa=r31-8"},
		{Frame{Kind: PLT, Slot: 11}, "cfa=plt(11)"},
		{Frame{Kind: Signal}, "signal"},
		{Frame{Kind: End}, "end"},
		{Frame{}, "none"},
		{Frame{Kind: Unsupported}, "unsupported"},
		// Numbers that do not fit.
		{Frame{Kind: SP, CFA: 12}, "unsupported"},
		{Frame{Kind: SP, CFA: -1}, "unsupported"},
		{Frame{Kind: SP, CFA: max24 + 8}, "unsupported"},
		{Frame{Kind: SP, CFA: -max24 - 16}, "unsupported"},
		{Frame{Kind: SP, CFA: 1 << 40}, "unsupported"},
		{Frame{Kind: SP, CFA: 8, FP: FPAtCFA, Slot: max24 + 8}, "unsupported"},
		{Frame{Kind: SP, CFA: 8, FP: FPAtCFA, Slot: -12}, "unsupported"},
		{Frame{Kind: SPDeref, Offset: max12 + 8}, "unsupported"},
		{Frame{Kind: FPDeref, Addend: -max12 - 16}, "unsupported"},
		{Frame{Kind: Reg, Register: 32}, "unsupported"},
		{Frame{Kind: Reg, Register: 3, FP: FPAtCFA, Slot: -32, RA: RAAfterFP, Gap: 8}, "unsupported"},
		{Frame{Kind: SP, CFA: 200, FP: FPAtCFA, Slot: -160, RA: RAAfterFP, Gap: 16 * 8}, "unsupported"},
		{Frame{Kind: SP, CFA: 200, FP: FPAtCFA, Slot: -8, RA: RAAfterFP, Gap: -17 * 8}, "unsupported"},
		{Frame{Kind: SP, CFA: 200, FP: FPAtCFA, Slot: -160, RA: RAAfterFP, Gap: 4}, "unsupported"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.frame), func(t *testing.T) {
			checkPack(t, tt.frame, 8, tt.want)
		})
	}
}

// TestPackWords packs the same rules for words of four bytes.
func TestPackWords(t *testing.T) {
	const max24, max12 = (1<<23 - 1) * 4, (1<<11 - 1) * 4
	for _, tt := range []struct {
		frame Frame
		want  string
	}{
		{Frame{Kind: SP, CFA: 4}, "cfa=sp+4"},
		{Frame{Kind: FP, CFA: 8, FP: FPAtCFA, Slot: -8}, "cfa=fp+8 fp=[cfa-8]"},
		{Frame{Kind: FPDeref, Offset: -4, FP: FPAtFP}, "cfa=*(fp-4)+0 fp=[fp+0]"},
		{Frame{Kind: SP, CFA: max24, FP: FPAtCFA, Slot: -max24 - 4}, "cfa=sp+33554428 fp=[cfa-33554432]"},
		{Frame{Kind: SPDeref, Offset: max12, Addend: -max12 - 4}, "cfa=*(sp+8188)-8192"},
		{Frame{Kind: Reg, Register: 1}, "cfa=r1+0"},
		{Frame{Kind: PLT, Slot: 11}, "cfa=plt(11)"},
		{Frame{Kind: SignalOld}, "old signal"},
		{Frame{Kind: SP, CFA: 6}, "unsupported"},
		{Frame{Kind: SP, CFA: max24 + 4}, "unsupported"},
		{Frame{Kind: SP, CFA: 4, FP: FPAtCFA, Slot: -2}, "unsupported"},
		{Frame{Kind: FPDeref, Offset: -2}, "unsupported"},
		{Frame{Kind: FPDeref, Addend: max12 + 4}, "unsupported"},
	} {
		t.Run(fmt.Sprint(tt.frame), func(t *testing.T) { checkPack(t, tt.frame, 4, tt.want) })
	}
	small, large := Frame{Kind: SP, CFA: 12, FP: FPAtCFA, Slot: -8}, Frame{Kind: SP, CFA: 24, FP: FPAtCFA, Slot: -16}
	if a, b := small.Pack(4), large.Pack(8); a != b || a.String() != "cfa=sp+3 fp=[cfa-2]" {
		t.Errorf("%v with words of four bytes, %v with words of eight", a, b)
	}
}

func checkPack(t *testing.T, frame Frame, word int64, want string) {
	t.Helper()
	r := frame.Pack(word)
	if got := r.Frame(word).String(); got != want {
		t.Errorf("rule %#x is %q, want %q", uint64(r), got, want)
	}
	if r == RuleUnsupported {
		return
	}
	if got := r.Frame(word); got != frame {
		t.Errorf("unpacked as %+v", got)
	}
	if got := unpacked(r, word); got != frame {
		t.Errorf("the program in the kernel takes it for %+v", got)
	}
}
