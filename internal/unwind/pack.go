package unwind

// Frame is what a rule says, before it is packed.
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

// Pack returns the rule, or RuleUnsupported if a number does not fit or is no
// multiple of the word size.
func (f *Frame) Pack() Rule {
	r := Rule(f.Kind) | Rule(f.FP)<<fpShift | Rule(f.RA)<<raShift
	slot := f.Slot
	if f.Kind == PLT {
		slot *= word // an offset in code, in bytes
	}
	ok := r.put(slot, slotShift, cfaShift)
	switch f.Kind {
	case SPDeref, FPDeref:
		ok = r.put(f.Offset, cfaShift, addendShift) && r.put(f.Addend, addendShift, 64) && ok
	default:
		ok = r.put(f.CFA, cfaShift, 64) && ok
	}
	if f.Kind == Reg {
		ok = f.Register < 32 && f.Gap == 0 && ok
		r |= Rule(f.Register&31) << regShift
	} else {
		ok = r.put(f.Gap, regShift, gapEnd) && ok
	}
	if !ok {
		return RuleUnsupported
	}
	return r
}

// put stores a number of bytes as words in the bits [from, to).
func (r *Rule) put(bytes int64, from, to uint) bool {
	words, bits := bytes/word, to-from
	*r |= Rule(uint64(words) << (64 - bits) >> (64 - to))
	return bytes%word == 0 && words<<(64-bits)>>(64-bits) == words
}

// Frame returns what the rule says.
func (r Rule) Frame() Frame {
	f := Frame{Kind: r.Kind(), FP: r.FP(), RA: r.RA(), Slot: r.Slot()}
	switch f.Kind {
	case SPDeref, FPDeref:
		f.Offset, f.Addend = r.Offset(), r.Addend()
	default:
		f.CFA = r.CFA()
	}
	if f.Kind == Reg {
		f.Register = r.Register()
	} else {
		f.Gap = r.Gap()
	}
	return f
}
