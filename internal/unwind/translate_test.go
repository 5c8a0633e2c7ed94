package unwind

import (
	"testing"

	"rtrace-bpf/internal/unwind/cfi"
)

func TestExpressions(t *testing.T) {
	tests := []struct {
		expr []byte
		want place
		bad  bool
	}{
		{expr: []byte{0x77, 8}, want: place{reg: 7, offset: 8}},
		{expr: []byte{0x76, 0x78, 0x06}, want: place{reg: 6, offset: -8, deref: true}},
		{expr: []byte{0x77, 0xa0, 0x01, 0x06, 0x23, 0x80, 0x01}, want: place{reg: 7, offset: 160, deref: true, addend: 128}},
		{expr: []byte{0x77, 0, 0x23, 16, 0x06}, want: place{reg: 7, offset: 16, deref: true}},
		{expr: []byte{0x92, 31, 0xf0, 0x7e, 0x06, 0x38, 0x22}, want: place{reg: 31, offset: -144, deref: true, addend: 8}},
		{expr: []byte{0x8d, 0, 0x08, 200, 0x22}, want: place{reg: 29, offset: 200}},
		{expr: nil, bad: true},
		{expr: []byte{0x77}, bad: true},
		{expr: []byte{0x77, 0x80}, bad: true},
		{expr: []byte{0x77, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, bad: true},
		{expr: []byte{0x92, 32, 0}, bad: true},
		{expr: []byte{0x77, 0, 0x06, 0x06}, bad: true},
		{expr: []byte{0x77, 0, 0x06, 0x23}, bad: true},
		{expr: []byte{0x77, 0, 0x38}, bad: true},
		{expr: []byte{0x77, 0, 0x38, 0x1c}, bad: true},
		{expr: []byte{0x77, 0, 0x08, 8, 0x1c}, bad: true},
		{expr: []byte{0x77, 0, 0x79, 0, 0x38, 0x1e, 0x22, 0x06}, bad: true}, // of libcrypto: sp + 8*r9
		{expr: []byte{0x06, 0x77, 0}, bad: true},
	}
	for _, tt := range tests {
		got, ok := simple(tt.expr)
		if ok == tt.bad || ok && got != tt.want {
			t.Errorf("% x is %+v, %v, want %+v", tt.expr, got, ok, tt.want)
		}
	}
}

func TestPLT(t *testing.T) {
	plt := map[cfi.Machine][]byte{
		cfi.AMD64: {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
		cfi.I386:  {0x74, 4, 0x78, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22},
		cfi.ARM64: {0, 0, 0, 0, 0, 0, 0x3b, 0, 0, 0, 0},
	}
	for machine, expr := range plt {
		tr := newTranslator(machine)
		if n, ok := tr.pltSlot(expr); ok != (machine != cfi.ARM64) || ok && n != 11 {
			t.Errorf("machine %d: slot %d, %v, want 11", machine, n, ok)
		}
		for i := range expr {
			for _, change := range []byte{1, 0x40} {
				other := append([]byte(nil), expr...)
				other[i] ^= change
				if n, ok := tr.pltSlot(other); ok && (i != 6 || n != 10) {
					t.Errorf("% x is taken for a PLT's", other)
				}
			}
		}
		if _, ok := tr.pltSlot(expr[:10]); ok {
			t.Error("a part is taken for a PLT's")
		}
		for other, expr := range plt {
			if _, ok := tr.pltSlot(expr); ok && other != machine {
				t.Errorf("machine %d takes the expression of %d for a PLT's", machine, other)
			}
		}
	}
}

func TestTranslate(t *testing.T) {
	saved := func(n int64) cfi.Rule { return cfi.Rule{How: cfi.AtCFA, Offset: n} }
	at := func(expr ...byte) cfi.Rule { return cfi.Rule{How: cfi.AtExpression, Expr: expr} }
	how := func(h cfi.How) cfi.Rule { return cfi.Rule{How: h, Reg: 5} }
	ra, none := saved(-8), cfi.Rule{}
	sp8, fp16 := cfi.CFA{Reg: 7, Offset: 8}, cfi.CFA{Reg: 6, Offset: 16}
	plt := cfi.CFA{Expr: []byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22}}
	amd64 := []struct {
		name       string
		cfa        cfi.CFA
		fp, ra, sp cfi.Rule
		want       string
	}{
		{"entry", sp8, none, ra, none, "cfa=sp+8"},
		{"fp unchanged", sp8, how(cfi.SameValue), ra, none, "cfa=sp+8"},
		{"fp undefined", sp8, how(cfi.Undefined), ra, none, "cfa=sp+8 fp=?"},
		{"fp in a register", sp8, how(cfi.Register), ra, none, "cfa=sp+8 fp=?"},
		{"fp computed from the CFA", sp8, how(cfi.CFAOffset), ra, none, "cfa=sp+8 fp=?"},
		{"fp computed", sp8, cfi.Rule{How: cfi.Expression, Expr: []byte{0x76, 0}}, ra, none, "cfa=sp+8 fp=?"},
		{"fp saved askew", sp8, saved(-12), ra, none, "cfa=sp+8 fp=?"},
		{"fp saved from sp", cfi.CFA{Reg: 7, Offset: 32}, at(0x77, 8), ra, none, "cfa=sp+32 fp=[cfa-24]"},
		{"fp saved from sp, another base", fp16, at(0x77, 8), ra, none, "cfa=fp+16 fp=?"},
		{"fp saved indirectly", sp8, at(0x76, 0, 0x06), ra, none, "cfa=sp+8 fp=?"},
		{"frame", fp16, saved(-16), ra, none, "cfa=fp+16 fp=[cfa-16]"},
		{"frame without the caller's", fp16, none, ra, none, "cfa=fp+16 fp=?"},
		{"frame that keeps it", fp16, how(cfi.SameValue), ra, none, "cfa=fp+16 fp=?"},
		{"realigned", cfi.CFA{Expr: []byte{0x76, 0x78, 0x06}}, at(0x76, 0), ra, none, "cfa=*(fp-8)+0 fp=[fp+0]"},
		{"realigned without the caller's", cfi.CFA{Expr: []byte{0x76, 0x78, 0x06}}, none, ra, none, "cfa=*(fp-8)+0 fp=?"},
		{"realigned at first", cfi.CFA{Reg: 10}, none, ra, none, "cfa=r10+0"},
		{"sp kept in the stack", cfi.CFA{Expr: []byte{0x77, 40, 0x06, 0x23, 8}}, saved(-16), ra, none, "cfa=*(sp+40)+8 fp=[cfa-16]"},
		{"a simple sum", cfi.CFA{Expr: []byte{0x77, 40}}, none, ra, none, "cfa=sp+40"},
		{"from the return address", cfi.CFA{Reg: 16}, none, ra, none, "unsupported"},
		{"from another register's word", cfi.CFA{Expr: []byte{0x73, 40, 0x06}}, none, ra, none, "unsupported"},
		{"PLT", plt, none, ra, none, "cfa=plt(10)"},
		{"PLT that changes fp", plt, saved(-16), ra, none, "cfa=plt(10) fp=?"},
		{"end", sp8, none, how(cfi.Undefined), none, "end"},
		{"return address in a register", sp8, none, how(cfi.Register), none, "unsupported"},
		{"return address unchanged", sp8, none, how(cfi.SameValue), none, "unsupported"},
		{"no return address", sp8, none, none, none, "unsupported"},
		{"return address elsewhere", sp8, none, saved(-16), none, "unsupported"},
		{"return address by expression", sp8, none, at(0x77, 0), none, "unsupported"},
		{"sp is not the CFA", sp8, none, ra, cfi.Rule{How: cfi.CFAOffset, Offset: 8}, "unsupported"},
		{"sp saved", sp8, none, ra, saved(-24), "unsupported"},
		{"sp is the CFA", sp8, none, ra, cfi.Rule{How: cfi.CFAOffset}, "cfa=sp+8"},
	}
	tr := newTranslator(cfi.AMD64)
	for _, tt := range amd64 {
		s := cfi.Span{CFA: tt.cfa, Rules: []cfi.Rule{columnFP: tt.fp, columnRA: tt.ra, columnSP: tt.sp}}
		if got := tr.rule(&s).Frame(8).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	arm64 := []struct {
		name   string
		cfa    cfi.CFA
		fp, ra cfi.Rule
		want   string
	}{
		{"leaf", cfi.CFA{Reg: 31}, none, none, "cfa=sp+0 ra=link"},
		{"leaf that keeps the link", cfi.CFA{Reg: 31}, none, how(cfi.SameValue), "cfa=sp+0 ra=link"},
		{"leaf that saves x29", cfi.CFA{Reg: 31, Offset: 16}, saved(-16), none, "cfa=sp+16 fp=[cfa-16] ra=link"},
		{"pair", cfi.CFA{Reg: 29, Offset: 32}, saved(-32), saved(-24), "cfa=fp+32 fp=[cfa-32] ra=after fp"},
		{"the other way round", cfi.CFA{Reg: 31, Offset: 32}, saved(-24), saved(-32), "cfa=sp+32 fp=[cfa-24] ra=after fp-16"},
		{"not a pair", cfi.CFA{Reg: 31, Offset: 5152}, saved(-32), saved(-16), "cfa=sp+5152 fp=[cfa-32] ra=after fp+8"},
		{"not a pair, far apart", cfi.CFA{Reg: 31, Offset: 512}, saved(-512), saved(-8), "unsupported"},
		{"not a pair, from x10", cfi.CFA{Reg: 10, Offset: 32}, saved(-32), saved(-16), "unsupported"},
		{"link only", cfi.CFA{Reg: 31, Offset: 32}, none, saved(-32), "cfa=sp+32 ra=[cfa-32]"},
		{"link only, from fp", cfi.CFA{Reg: 29, Offset: 32}, none, saved(-32), "cfa=fp+32 fp=? ra=[cfa-32]"},
		{"link askew", cfi.CFA{Reg: 31, Offset: 32}, none, saved(-28), "unsupported"},
		{"link in another register", cfi.CFA{Reg: 31}, none, how(cfi.Register), "unsupported"},
		{"from x10", cfi.CFA{Reg: 10, Offset: 16}, none, saved(-8), "cfa=r10+16 ra=[cfa-8]"},
		{"from the pc", cfi.CFA{Reg: 32}, none, none, "unsupported"},
		{"end", cfi.CFA{Reg: 31}, none, how(cfi.Undefined), "end"},
	}
	tr = newTranslator(cfi.ARM64)
	for _, tt := range arm64 {
		s := cfi.Span{CFA: tt.cfa, Rules: []cfi.Rule{columnFP: tt.fp, columnRA: tt.ra, columnSP: none}}
		if got := tr.rule(&s).Frame(8).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	i386 := []struct {
		name   string
		cfa    cfi.CFA
		fp, ra cfi.Rule
		want   string
	}{
		{"entry", cfi.CFA{Reg: 4, Offset: 4}, none, saved(-4), "cfa=sp+4"},
		{"frame", cfi.CFA{Reg: 5, Offset: 8}, saved(-8), saved(-4), "cfa=fp+8 fp=[cfa-8]"},
		{"realigned at first", cfi.CFA{Reg: 1}, none, saved(-4), "cfa=r1+0"},
		{"realigned", cfi.CFA{Expr: []byte{0x75, 0x7c, 0x06}}, at(0x75, 0), saved(-4), "cfa=*(fp-4)+0 fp=[fp+0]"},
		{"realigned with another register", cfi.CFA{Reg: 7}, at(0x75, 0), saved(-4), "cfa=r7+0 fp=[fp+0]"},
		{"sp kept in the stack", cfi.CFA{Expr: []byte{0x74, 12, 0x06, 0x23, 4}}, none, saved(-4), "cfa=*(sp+12)+4"},
		{"from another register's word", cfi.CFA{Expr: []byte{0x71, 0, 0x06}}, none, saved(-4), "unsupported"},
		{"from the return address", cfi.CFA{Reg: 8}, none, saved(-4), "unsupported"},
		{"PLT", cfi.CFA{Expr: []byte{0x74, 4, 0x78, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22}}, none, saved(-4), "cfa=plt(11)"},
		{"PLT of amd64", plt, none, saved(-4), "unsupported"},
		{"return address where amd64 has it", cfi.CFA{Reg: 4, Offset: 8}, none, saved(-8), "unsupported"},
		{"return address unchanged", cfi.CFA{Reg: 4, Offset: 4}, none, none, "unsupported"},
		{"askew", cfi.CFA{Reg: 4, Offset: 6}, none, saved(-4), "unsupported"},
		{"fp saved askew", cfi.CFA{Reg: 4, Offset: 12}, saved(-6), saved(-4), "cfa=sp+12 fp=?"},
		{"end", cfi.CFA{Reg: 4, Offset: 4}, none, how(cfi.Undefined), "end"},
	}
	tr = newTranslator(cfi.I386)
	for _, tt := range i386 {
		s := cfi.Span{CFA: tt.cfa, Rules: []cfi.Rule{columnFP: tt.fp, columnRA: tt.ra, columnSP: none}}
		if got := tr.rule(&s).Frame(4).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
