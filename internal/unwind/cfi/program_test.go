package cfi

import (
	"errors"
	"slices"
	"testing"

	"rtrace-bpf/trace"
)

// TestInstructions runs hand-written programs. The CIE sets CFA=rsp+8, ra at c-8; the factors
// are 1 and -8.
func TestInstructions(t *testing.T) {
	const first = "0-100 rsp+8 ra=c-8\n"
	tests := []struct {
		name    string
		program []byte
		want    string
	}{
		{"nothing", nil, first},
		{"nop", []byte{opNop, opNop}, first},
		{"advance by nothing", []byte{opAdvance, opAdvance1, 0}, first},
		{
			"advance",
			[]byte{opAdvance | 1, opAdvance1, 2, opAdvance2, 3, 0, opAdvance4, 4, 0, 0, 0},
			"0-1 rsp+8 ra=c-8\n1-3 rsp+8 ra=c-8\n3-6 rsp+8 ra=c-8\n6-a rsp+8 ra=c-8\na-100 rsp+8 ra=c-8\n",
		},
		{
			"set_loc", slices.Concat([]byte{opSetLoc}, []byte{0x10, 0x10, 0x40, 0, 0, 0, 0, 0}, []byte{opDefCFAOffset, 16}),
			"0-10 rsp+8 ra=c-8\n10-100 rsp+16 ra=c-8\n",
		},
		{"advance to the end", []byte{opAdvance2, 0, 1, 0x3f}, first},
		{"advance beyond the end", []byte{opAdvance4, 0xff, 0xff, 0xff, 0xff, 0x3f}, first},
		{"def_cfa", []byte{opDefCFA, 6, 16}, "0-100 rbp+16 ra=c-8\n"},
		{"def_cfa_sf", []byte{opDefCFASigned, 6, 0x7e}, "0-100 rbp+16 ra=c-8\n"},
		{"def_cfa_register", []byte{opDefCFARegister, 6}, "0-100 rbp+8 ra=c-8\n"},
		{"def_cfa_offset", []byte{opDefCFAOffset, 0x80, 0x01}, "0-100 rsp+128 ra=c-8\n"},
		{"def_cfa_offset_sf", []byte{opDefCFAOffSigned, 0x7d}, "0-100 rsp+24 ra=c-8\n"},
		{"def_cfa_expression", []byte{opDefCFAExpr, 2, 0x77, 8}, "0-100 exp ra=c-8\n"},
		{"empty expression", []byte{opDefCFAExpr, 0}, "0-100 exp ra=c-8\n"},
		{"from an expression", []byte{opDefCFAExpr, 1, 0, opAdvance | 1, opDefCFA, 7, 16}, "0-1 exp ra=c-8\n1-100 rsp+16 ra=c-8\n"},
		{"offset", []byte{opOffset | 6, 2}, "0-100 rsp+8 rbp=c-16 ra=c-8\n"},
		{"offset_extended", []byte{opOffsetExtended, 6, 2}, "0-100 rsp+8 rbp=c-16 ra=c-8\n"},
		{"offset_extended_sf", []byte{opOffsetSigned, 6, 0x7e}, "0-100 rsp+8 rbp=c+16 ra=c-8\n"},
		{"GNU_negative_offset_extended", []byte{opNegativeOffset, 6, 2}, "0-100 rsp+8 rbp=c+16 ra=c-8\n"},
		{"val_offset", []byte{opValOffset, 6, 2}, "0-100 rsp+8 rbp=v-16 ra=c-8\n"},
		{"val_offset_sf", []byte{opValOffsetSigned, 6, 0x7e}, "0-100 rsp+8 rbp=v+16 ra=c-8\n"},
		{"expression", []byte{opExpression, 6, 2, 0x76, 0}, "0-100 rsp+8 rbp=exp ra=c-8\n"},
		{"val_expression", []byte{opValExpression, 6, 2, 0x76, 0}, "0-100 rsp+8 rbp=vexp ra=c-8\n"},
		{"register", []byte{opRegister, 16, 5}, "0-100 rsp+8 ra=rdi\n"},
		{"undefined", []byte{opUndefined, 16}, "0-100 rsp+8 ra=u\n"},
		{"same_value", []byte{opSameValue, 6}, "0-100 rsp+8 rbp=s ra=c-8\n"},
		{
			"restore",
			[]byte{opOffset | 6, 2, opUndefined, 16, opAdvance | 1, opRestore | 6, opRestoreExtended, 16},
			"0-1 rsp+8 rbp=c-16 ra=u\n1-100 rsp+8 ra=c-8\n",
		},
		{
			"remember",
			[]byte{opOffset | 6, 2, opDefCFAOffset, 16, opRememberState, opAdvance | 1, opRestore | 6, opDefCFA, 6, 8, opAdvance | 1, opRestoreState},
			"0-1 rsp+16 rbp=c-16 ra=c-8\n1-2 rbp+8 ra=c-8\n2-100 rsp+16 rbp=c-16 ra=c-8\n",
		},
		{
			"remember twice",
			[]byte{opRememberState, opDefCFAOffset, 16, opRememberState, opDefCFAOffset, 24, opRestoreState, opAdvance | 1, opRestoreState},
			"0-1 rsp+16 ra=c-8\n1-100 rsp+8 ra=c-8\n",
		},
		{"GNU_args_size", []byte{opArgsSize, 16}, first},
		{"registers that do not matter", []byte{opOffset | 33, 2, opOffsetExtended, 0xff, 0x7f, 1, opRestoreExtended, 0xff, 0x7f}, first},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := little()
			m.fde(0, tt.program...)
			got, err := rows(only(t, m.section(AMD64)), AMD64)
			if err != nil || got != tt.want {
				t.Errorf("rows\n%s%v, want\n%s", got, err, tt.want)
			}
		})
	}
}

// TestMalformed runs programs that are refused.
func TestMalformed(t *testing.T) {
	tests := []struct {
		name    string
		program []byte
		want    error
	}{
		{"truncated", []byte{opDefCFA, 7}, trace.ErrTruncated},
		{"truncated advance", []byte{opAdvance4, 1, 0}, trace.ErrTruncated},
		{"truncated expression", []byte{opExpression, 6, 9, 0}, trace.ErrTruncated},
		{"huge expression", []byte{opDefCFAExpr, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, trace.ErrTruncated},
		{"huge number", []byte{opDefCFAOffset, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, trace.ErrTruncated},
		{"endless number", slices.Repeat([]byte{opDefCFAOffset | 0x80}, 12), trace.ErrTruncated},
		{"unknown", []byte{0x1c}, trace.ErrUnsupported},
		{"no window on this machine", []byte{opNegateRA}, trace.ErrUnsupported},
		{"restore_state too often", []byte{opRestoreState}, trace.ErrMalformed},
		{"remember_state too often", slices.Repeat([]byte{opRememberState}, maxStates+1), trace.ErrLimit},
		{"too many", slices.Concat(make([]byte, maxInstructions), []byte{0x3f}), trace.ErrLimit},
		{"set_loc back", []byte{opAdvance | 9, opSetLoc, 0, 0x10, 0x40, 0, 0, 0, 0, 0}, trace.ErrMalformed},
		{"offset of an expression", []byte{opDefCFAExpr, 0, opDefCFAOffset, 8}, trace.ErrMalformed},
		{"register of an expression", []byte{opDefCFAExpr, 0, opDefCFARegister, 6}, trace.ErrMalformed},
		{"CFA from no register", []byte{opDefCFA, 0x80, 0x02, 8}, trace.ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := little()
			program := append([]byte{opAdvance | 1}, tt.program...)
			at := m.fde(0, program...)
			got, err := rows(only(t, m.section(AMD64)), AMD64)
			syntax, ok := errors.AsType[*trace.SyntaxError](err)
			if !errors.Is(err, tt.want) || !ok || syntax.Offset != int64(at) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if got[:len("0-1 rsp+8 ra=c-8\n")] != "0-1 rsp+8 ra=c-8\n" {
				t.Errorf("rows before it: %q", got)
			}
		})
	}
}

// TestMalformedCommon has CIEs that are refused when they are run.
func TestMalformedCommon(t *testing.T) {
	head := commonAMD64[:9]
	for name, program := range map[string][]byte{
		"advance":  {opDefCFA, 7, 8, opAdvance | 1},
		"restore":  {opDefCFA, 7, 8, opRestore | 6},
		"no CFA":   {opOffset | 16, 1},
		"unknown":  {0x1c},
		"too long": make([]byte, maxInitial+1),
	} {
		m := &maker{order: little().order, eh: true}
		m.entry(-1, slices.Concat(head, program)...)
		m.fde(0)
		bad := 0
		for f, err := range m.section(AMD64).FDEs {
			if err == nil {
				_, err = rows(f, AMD64)
			}
			if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
				bad++
			}
		}
		if bad != 1 {
			t.Errorf("%s: %d errors, want 1", name, bad)
		}
	}
}

func TestSignedReturnAddress(t *testing.T) {
	m := &maker{order: little().order, eh: true}
	m.entry(-1, 1, 'z', 'R', 0, 4, 0x78, 30, 1, 0, opDefCFA, 31, 0)
	m.fde(0, opAdvance|1, opNegateRA, opAdvance|1, opDefCFAOffset, 16, opOffset|29, 2, opOffset|30, 1, opRememberState,
		opAdvance|2, opNegateRA, opAdvance|1, opRestoreState)
	got, err := rows(only(t, m.section(ARM64)), ARM64)
	want := "0-4 sp+0\n4-8 sp+0 signed\n8-10 sp+16 x29=c-16 x30=c-8 signed\n10-14 sp+16 x29=c-16 x30=c-8\n14-100 sp+16 x29=c-16 x30=c-8 signed\n"
	if err != nil || got != want {
		t.Errorf("rows\n%s%v, want\n%s", got, err, want)
	}
}

// TestColumns checks that an interpreter for some registers finds the same as Rows.
func TestColumns(t *testing.T) {
	m := little()
	m.fde(0, opOffset|6, 2, opOffset|3, 3, opAdvance|1, opRestore|6, opUndefined, 16)
	f := only(t, m.section(AMD64))
	in := NewInterpreter(AMD64, 16, 6)
	for range 2 { // it is used again
		var got []Rule
		if err := in.Run(f, func(s *Span) error {
			got = append(got, s.Rules...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := []Rule{{How: AtCFA, Offset: -8}, {How: AtCFA, Offset: -16}, {How: Undefined}, {}}
		if !slices.EqualFunc(got, want, func(a, b Rule) bool { return a.How == b.How && a.Offset == b.Offset }) {
			t.Errorf("rules %v, want %v", got, want)
		}
	}
}
