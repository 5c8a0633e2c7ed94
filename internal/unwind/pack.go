package unwind

import "fmt"

// Frame is the contents of a rule, unpacked.
type Frame struct {
	Kind           Kind
	Register       uint8 // of kind Reg
	CFA            int64 // bytes; not for kinds SPDeref and FPDeref
	Offset, Addend int64 // bytes; for these two
	FP             FPRule
	RA             RARule
	Gap            int64 // bytes, of RAAfterFP
	Slot           int64 // bytes
}

// Pack returns the rule for a machine with words of the given number of bytes, or
// RuleUnsupported if a number does not fit or is not a multiple of the word.
func (f *Frame) Pack(word int64) Rule {
	r := Rule(f.Kind) | Rule(f.FP)<<fpShift | Rule(f.RA)<<raShift
	slot := f.Slot
	if f.Kind == PLT {
		slot *= word // an offset in code, in bytes
	}
	ok := r.put(slot, word, slotShift, cfaShift)
	switch f.Kind {
	case SPDeref, FPDeref:
		ok = r.put(f.Offset, word, cfaShift, addendShift) && r.put(f.Addend, word, addendShift, 64) && ok
	default:
		ok = r.put(f.CFA, word, cfaShift, 64) && ok
	}
	if f.Kind == Reg {
		ok = f.Register < 32 && f.Gap == 0 && ok
		r |= Rule(f.Register&31) << regShift
	} else {
		ok = r.put(f.Gap, word, regShift, gapEnd) && ok
	}
	if !ok {
		return RuleUnsupported
	}
	return r
}

// put stores a number of bytes, converted to words, in the bits [from, to).
func (r *Rule) put(bytes, word int64, from, to uint) bool {
	words, bits := bytes/word, to-from
	*r |= Rule(uint64(words) << (64 - bits) >> (64 - to))
	return bytes%word == 0 && words<<(64-bits)>>(64-bits) == words
}

// Frame returns the contents of the rule for a machine with words of the given number of bytes.
func (r Rule) Frame(word int64) Frame {
	f := Frame{Kind: r.Kind(), FP: r.FP(), RA: r.RA(), Slot: r.slot()}
	if f.Kind != PLT {
		f.Slot *= word
	}
	switch f.Kind {
	case SPDeref, FPDeref:
		f.Offset, f.Addend = r.offset()*word, r.addend()*word
	default:
		f.CFA = r.cfa() * word
	}
	if f.Kind == Reg {
		f.Register = r.Register()
	} else {
		f.Gap = r.gap() * word
	}
	return f
}

// String describes the frame.
func (f Frame) String() string {
	var text string
	switch k := f.Kind; k {
	case SP, FP:
		text = fmt.Sprintf("cfa=%v%+d", k, f.CFA)
	case SPDeref, FPDeref:
		text = fmt.Sprintf("cfa=*(%s%+d)%+d", k.String()[1:], f.Offset, f.Addend)
	case PLT:
		text = fmt.Sprintf("cfa=plt(%d)", f.Slot)
	case Reg:
		text = fmt.Sprintf("cfa=r%d%+d", f.Register, f.CFA)
	default:
		return k.String()
	}
	switch f.FP {
	case FPAtCFA:
		text += fmt.Sprintf(" fp=[cfa%+d]", f.Slot)
	case FPAtFP:
		text += fmt.Sprintf(" fp=[fp%+d]", f.Slot)
	case FPUnknown:
		text += " fp=?"
	}
	switch f.RA {
	case RAAfterFP:
		text += " ra=after fp"
		if f.Gap != 0 {
			text += fmt.Sprintf("%+d", f.Gap)
		}
	case RAAtCFA:
		text += fmt.Sprintf(" ra=[cfa%+d]", f.Slot)
	case RALink:
		text += " ra=link"
	}
	return text
}
