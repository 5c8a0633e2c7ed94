package unwind

import "rtrace-bpf/internal/unwind/cfi"

// translator converts the rows of a machine to rules.
type translator struct {
	machine    cfi.Machine
	word       int64 // bytes
	fp, sp, ra uint8
}

// Columns of the spans that are translated.
const (
	columnFP = iota
	columnRA
	columnSP
)

func newTranslator(m cfi.Machine) translator {
	return translator{machine: m, word: int64(m.Word()), fp: m.FP(), sp: m.SP(), ra: m.RA()}
}

// interpreter returns an interpreter that yields spans for rule.
func (t *translator) interpreter() *cfi.Interpreter {
	return cfi.NewInterpreter(t.machine, t.fp, t.ra, t.sp)
}

// rule returns the rule for a row. In case of doubt, that is RuleUnsupported.
func (t *translator) rule(s *cfi.Span) Rule {
	ra, sp := &s.Rules[columnRA], &s.Rules[columnSP]
	switch {
	case ra.How == cfi.Undefined:
		return RuleEnd
	case sp.How != cfi.Unset && (sp.How != cfi.CFAOffset || sp.Offset != 0):
		return RuleUnsupported // the caller's stack does not begin at the CFA
	}
	f := Frame{Kind: Unsupported}
	t.cfa(&f, &s.CFA)
	if f.Kind == Unsupported {
		return RuleUnsupported
	}
	t.framePointer(&f, &s.Rules[columnFP])
	if !t.returnAddress(&f, ra, &s.Rules[columnFP]) {
		return RuleUnsupported
	}
	return f.Pack(t.word)
}

// cfa sets the kind and the numbers of the CFA.
func (t *translator) cfa(f *Frame, c *cfi.CFA) {
	if c.Expr == nil {
		t.base(f, c.Reg, c.Offset)
		return
	}
	if slot, ok := t.pltSlot(c.Expr); ok {
		f.Kind, f.Slot = PLT, slot
		return
	}
	p, ok := simple(c.Expr)
	switch {
	case !ok:
	case !p.deref:
		t.base(f, p.reg, p.offset)
	case p.reg == t.sp:
		f.Kind, f.Offset, f.Addend = SPDeref, p.offset, p.addend
	case p.reg == t.fp:
		f.Kind, f.Offset, f.Addend = FPDeref, p.offset, p.addend
	}
}

func (t *translator) base(f *Frame, reg uint8, offset int64) {
	f.CFA = offset
	switch {
	case reg == t.sp:
		f.Kind = SP
	case reg == t.fp:
		f.Kind = FP
	case reg < min(t.ra, 31):
		f.Kind, f.Register = Reg, reg
	case t.machine == cfi.ARM64 && reg == t.ra:
		f.Kind, f.Register = Reg, reg
	}
}

// framePointer sets the rule for the caller's frame pointer.
func (t *translator) framePointer(f *Frame, r *cfi.Rule) {
	f.FP = FPUnknown
	switch r.How {
	case cfi.Unset, cfi.SameValue:
		// A frame pointer that leads to this frame is not the caller's, even if the rule for
		// the caller's was omitted.
		if f.Kind != FP && f.Kind != FPDeref {
			f.FP = FPSame
		}
	case cfi.AtCFA:
		t.saved(f, FPAtCFA, r.Offset)
	case cfi.AtExpression:
		p, ok := simple(r.Expr)
		switch {
		case !ok || p.deref:
		case p.reg == t.fp:
			t.saved(f, FPAtFP, p.offset)
		case p.reg == t.sp && f.Kind == SP:
			t.saved(f, FPAtCFA, p.offset-f.CFA)
		}
	}
}

// saved records where the frame pointer is saved.
func (t *translator) saved(f *Frame, where FPRule, slot int64) {
	if f.Kind == PLT || slot%t.word != 0 {
		return // it stays unknown
	}
	f.FP, f.Slot = where, slot
}

// returnAddress sets the rule for the return address. It reports false if no rule fits.
func (t *translator) returnAddress(f *Frame, ra, fp *cfi.Rule) bool {
	if t.machine != cfi.ARM64 {
		return ra.How == cfi.AtCFA && ra.Offset == -t.word
	}
	switch ra.How {
	case cfi.Unset, cfi.SameValue:
		f.RA = RALink
	case cfi.AtCFA:
		switch {
		case f.FP == FPAtCFA:
			f.RA, f.Gap = RAAfterFP, ra.Offset-fp.Offset-t.word
		case f.FP == FPSame || f.FP == FPUnknown:
			f.RA, f.Slot = RAAtCFA, ra.Offset
		default:
			return false
		}
	default:
		return false
	}
	return true
}
