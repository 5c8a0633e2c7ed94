package reference

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"rtrace-bpf/trace"
)

// testFrame has known registers 0 to 7, each holding 0x1000 and its number,
// and 64 bytes of memory at 0x5000, each byte holding its offset.
func testFrame(m elf.Machine) *frame {
	data := make([]byte, 64)
	for i := range data {
		data[i] = byte(i)
	}
	f := &frame{mem: Raw{Addr: 0x5000, Data: data}, module: Module{Bias: 0x70000000}, machine: machines[m], options: new(Options)}
	for n := range uint64(8) {
		f.regs.Set(n, 0x1000+n)
	}
	return f
}

// TestStackOperations has the examples of DWARF 5, appendix D.1.2.
func TestStackOperations(t *testing.T) {
	before := []uint64{1000, 29, 17} // the last one is on top
	tests := []struct {
		name  string
		code  []byte
		after []uint64
	}{
		{"dup", []byte{opDup}, []uint64{1000, 29, 17, 17}},
		{"drop", []byte{opDrop}, []uint64{1000, 29}},
		{"pick 2", []byte{opPick, 2}, []uint64{1000, 29, 17, 1000}},
		{"over", []byte{opOver}, []uint64{1000, 29, 17, 29}},
		{"swap", []byte{opSwap}, []uint64{1000, 17, 29}},
		{"rot", []byte{opRot}, []uint64{17, 1000, 29}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code := test.code
			for _, want := range slices.Backward(test.after) {
				got, err := testFrame(elf.EM_X86_64).evaluate(code, before...)
				if err != nil || got != want {
					t.Errorf("%x = %d, %v; want %d", code, got, err, want)
				}
				code = append(slices.Clone(code), opDrop)
			}
			if v, err := testFrame(elf.EM_X86_64).evaluate(code, before...); err == nil {
				t.Errorf("the stack has one more entry, %d", v)
			}
		})
	}
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

func code(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

// minus returns a negative number as a value of the generic type.
func minus(v uint64) uint64 { return -v }

func TestValues(t *testing.T) {
	low, high := uint64(1)<<63, uint64(1)<<63-1
	tests := []struct {
		name string
		code []byte
		want uint64
	}{
		{"initial", code(opNop), 99},
		{"addr", code(opAddr, u64(0x1234)), 0x70001234},
		{"const1u", code(opConst1u, 0xff), 0xff},
		{"const1s", code(opConst1s, 0xff), minus(1)},
		{"const2u", code(opConst2u, 0xfe, 0xff), 0xfffe},
		{"const2s", code(opConst2s, 0xfe, 0xff), minus(2)},
		{"const4u", code(opConst4u, 0xfd, 0xff, 0xff, 0xff), 0xfffffffd},
		{"const4s", code(opConst4s, 0xfd, 0xff, 0xff, 0xff), minus(3)},
		{"const8u", code(opConst8u, u64(low)), low},
		{"const8s", code(opConst8s, u64(minus(4))), minus(4)},
		{"constu", code(opConstu, 0xe5, 0x8e, 0x26), 624485},
		{"consts", code(opConsts, 0xc0, 0xbb, 0x78), minus(123456)},
		{"consts of ten bytes", code(opConsts, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), low},
		{"lit31", code(opLit31), 31},
		{"breg3", code(opBreg0+3, 0x7e), 0x1001},
		{"bregx", code(opBregx, 7, 0x10), 0x1017},
		{"deref", code(opConst2u, 0x08, 0x50, opDeref), 0x0f0e0d0c0b0a0908},
		{"deref, unaligned", code(opConst2u, 0x03, 0x50, opDeref), 0x0a09080706050403},
		{"deref_size 2", code(opConst2u, 0x08, 0x50, opDerefSize, 2), 0x0908},
		{"deref_size 1, the last byte", code(opConst2u, 0x3f, 0x50, opDerefSize, 1), 0x3f},
		{"deref_size 4 at the end", code(opConst2u, 0x3c, 0x50, opDerefSize, 4), 0x3f3e3d3c},
		{"abs", code(opConst1s, 0x80, opAbs), 128},
		{"neg", code(opLit0+5, opNeg), minus(5)},
		{"not", code(opLit0, opNot), ^uint64(0)},
		{"plus_uconst", code(opLit0+5, opPlusUconst, 0x80, 1), 133},
		{"and", code(opLit0+12, opLit0+10, opAnd), 8},
		{"or", code(opLit0+12, opLit0+10, opOr), 14},
		{"xor", code(opLit0+12, opLit0+10, opXor), 6},
		{"minus", code(opLit0+1, opLit0+3, opMinus), minus(2)},
		{"plus", code(opConst8u, u64(^uint64(0)), opLit0+3, opPlus), 2},
		{"mul", code(opConst1s, 0xfd, opLit0+7, opMul), minus(21)},
		{"div is signed", code(opConst1s, 0xf9, opLit0+2, opDiv), minus(3)},
		{"div, the lowest by -1", code(opConst8u, u64(low), opConst1s, 0xff, opDiv), low},
		{"mod is unsigned", code(opConst1s, 0xff, opLit0+10, opMod), 5},
		{"shl", code(opLit0+3, opLit0+4, opShl), 48},
		{"shl by 64", code(opLit0+3, opConst1u, 64, opShl), 0},
		{"shr", code(opConst1s, 0xff, opLit0+1, opShr), high},
		{"shra", code(opConst8u, u64(low), opConst1u, 62, opShra), minus(2)},
		{"shra by 200", code(opConst8u, u64(low), opConst1u, 200, opShra), minus(1)},
		{"eq", code(opLit0, opLit0, opEq), 1},
		{"ne", code(opLit0, opLit0, opNe), 0},
		{"lt is signed", code(opConst1s, 0xff, opLit0, opLt), 1},
		{"le", code(opLit0, opLit0, opLe), 1},
		{"gt", code(opLit0, opLit0, opGt), 0},
		{"ge is signed", code(opLit0, opConst1s, 0xff, opGe), 1},
		{"skip", code(opLit0+1, opSkip, 1, 0, opLit0+2, opNop), 1},
		{"skip to the end", code(opLit0+1, opSkip, 1, 0, opLit0+2), 1},
		{"bra taken", code(opLit0+7, opLit0+1, opBra, 1, 0, opLit0+2), 7},
		{"bra not taken", code(opLit0+7, opLit0, opBra, 1, 0, opLit0+2), 2},
		// 10, 9, ... 0 by a branch backwards.
		{"loop", code(opLit0+10, opLit0+1, opMinus, opDup, opBra, 0xfa, 0xff), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := testFrame(elf.EM_X86_64).evaluate(test.code, 99)
			if err != nil || got != test.want {
				t.Errorf("%x = %#x, %v; want %#x", test.code, got, err, test.want)
			}
		})
	}
}

func TestBadExpressions(t *testing.T) {
	tests := []struct {
		name string
		code []byte
		want error
		at   int64 // offset of the fault
	}{
		{"empty", nil, trace.ErrMalformed, 0},
		{"nothing left", code(opLit0, opDrop), trace.ErrMalformed, 2},
		{"pop of nothing", code(opNop, opPlus), trace.ErrMalformed, 1},
		{"pick too deep", code(opLit0, opPick, 1), trace.ErrMalformed, 1},
		{"division by zero", code(opLit0, opLit0, opDiv), trace.ErrMalformed, 2},
		{"remainder by zero", code(opLit0, opLit0, opMod), trace.ErrMalformed, 2},
		{"cut operand", code(opConst4u, 1, 2), trace.ErrTruncated, 0},
		{"cut LEB128", code(opLit0, opPlusUconst, 0x80), trace.ErrTruncated, 1},
		{"cut signed LEB128", code(opConsts, 0x80), trace.ErrTruncated, 0},
		{"long LEB128", code(opConstu, slices.Repeat([]byte{0x80}, 11), 0), trace.ErrLimit, 0},
		{"long signed LEB128", code(opConsts, slices.Repeat([]byte{0x80}, 11), 0), trace.ErrLimit, 0},
		{"branch before the start", code(opSkip, 0xfc, 0xff), trace.ErrMalformed, 0},
		{"branch beyond the end", code(opSkip, 1, 0), trace.ErrMalformed, 0},
		{"for ever", code(opSkip, 0xfd, 0xff), trace.ErrLimit, 0},
		{"too many entries", code(opLit0, opSkip, 0xfc, 0xff), trace.ErrLimit, 0},
		{"value of nine bytes", code(opLit0, opDerefSize, 9), trace.ErrMalformed, 1},
		{"value of no bytes", code(opLit0, opDerefSize, 0), trace.ErrMalformed, 1},
		{"reg0 is a place", code(0x50), trace.ErrUnsupported, 0},
		{"call_frame_cfa", code(0x9c), trace.ErrUnsupported, 0},
		{"xderef", code(0x18), trace.ErrUnsupported, 0},
		{"reserved", code(0x07), trace.ErrUnsupported, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, err := testFrame(elf.EM_X86_64).evaluate(test.code)
			var syntax *trace.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("%#x, %v; want a syntax error", v, err)
			}
			if !errors.Is(err, test.want) || syntax.Offset != test.at {
				t.Errorf("%v; want %v at %d", err, test.want, test.at)
			}
		})
	}
}

func TestMissingValues(t *testing.T) {
	tests := []struct {
		name string
		code []byte
		want error
	}{
		{"register", code(opBreg0+8, 0), errUnknown},
		{"register that is not followed", code(opBregx, 0xff, 0x7f, 0), errUnknown},
		{"memory", code(opConst2u, 0x39, 0x50, opDeref), errUnreadable},
		{"memory below", code(opConst2u, 0xff, 0x4f, opDerefSize, 1), errUnreadable},
		{"the first miss counts", code(opBreg0+8, 0, opDeref, 0xff), errUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if v, err := testFrame(elf.EM_X86_64).evaluate(test.code); !errors.Is(err, test.want) {
				t.Errorf("%#x, %v; want %v", v, err, test.want)
			}
		})
	}
}
