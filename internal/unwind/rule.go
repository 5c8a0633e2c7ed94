package unwind

import "fmt"

// Rule says how to get from a frame to its caller's. It is packed as
// bpf/tables.h reads it:
//
//	bits  0-3   [Kind]
//	bits  4-6   [FPRule]: the caller's frame pointer
//	bits  7-8   [RARule]: the return address
//	bits  9-13  number of the register of kind Reg, as DWARF counts; else the gap
//	            of RAAfterFP, signed, in words
//	bits 16-39  slot, signed, in words of 8 bytes
//	bits 40-63  cfa, signed, in words of 8 bytes; for kinds SPDeref and FPDeref
//	            the low 12 bits are the offset and the high 12 the addend
type Rule uint64

// Rules that are only a kind.
const (
	RuleNone        = Rule(None)
	RuleSignal      = Rule(Signal)
	RuleEnd         = Rule(End)
	RuleUnsupported = Rule(Unsupported)
)

// Kind says what the CFA is: the stack pointer of the caller before the call.
type Kind uint8

// The kinds of rules.
const (
	None        Kind = iota // there is no rule for the address
	SP                      // CFA = sp + cfa
	FP                      // CFA = fp + cfa
	SPDeref                 // CFA = *(sp + offset) + addend
	FPDeref                 // CFA = *(fp + offset) + addend
	PLT                     // CFA = sp + 8, or sp + 16 from the byte slot of an entry of 16 bytes on
	Signal                  // the registers are in the kernel's signal frame at sp
	End                     // the outermost frame of a thread
	Reg                     // CFA = register + cfa; the register is known right below a signal frame only
	Unsupported             // there is a rule, of a kind that is not here
)

var kindNames = [...]string{"none", "sp", "fp", "*sp", "*fp", "plt", "signal", "end", "reg", "unsupported"}

// FPRule says where the frame pointer of the caller is: rbp or x29.
type FPRule uint8

// The rules for the frame pointer.
const (
	FPSame    FPRule = iota // not changed
	FPAtCFA                 // saved at CFA + slot
	FPAtFP                  // saved at fp + slot
	FPUnknown               // lost, or not to be found in a simple way
)

// RARule says where the return address is. On AMD64 it always is RABelowCFA.
type RARule uint8

// The rules for the return address.
const (
	RABelowCFA RARule = iota // saved at CFA - 8
	RAAfterFP                // saved in the word after the caller's frame pointer, or a gap farther
	RAAtCFA                  // saved at CFA + slot; the frame pointer is not saved
	RALink                   // in the link register
)

// Places of the fields.
const (
	fpShift     = 4
	raShift     = 7
	regShift    = 9
	gapEnd      = 14
	slotShift   = 16
	cfaShift    = 40
	addendShift = 52
)

// word is the size of what is saved in a stack, and the unit of all fields.
const word = 8

// Kind returns the rule's kind.
func (r Rule) Kind() Kind { return Kind(r & 0xf) }

// FP returns where the caller's frame pointer is.
func (r Rule) FP() FPRule { return FPRule(r >> fpShift & 7) }

// RA returns where the return address is.
func (r Rule) RA() RARule { return RARule(r >> raShift & 3) }

// Register returns the DWARF number of the register of kind Reg.
func (r Rule) Register() uint8 { return uint8(r >> regShift & 0x1f) }

// Gap returns by how many bytes the return address of RAAfterFP is farther away
// than in the word after the caller's frame pointer; not for kind Reg.
func (r Rule) Gap() int64 { return int64(r<<(64-gapEnd)) >> (64 - gapEnd + regShift) * word }

// Slot returns the slot in bytes, except for kind PLT, where it is the offset
// in an entry from which on a word more is on the stack.
func (r Rule) Slot() int64 {
	slot := int64(r<<(64-cfaShift)) >> (64 - cfaShift + slotShift)
	if r.Kind() == PLT {
		return slot
	}
	return slot * word
}

// CFA returns what is to be added for the CFA, in bytes; not for kinds SPDeref
// and FPDeref.
func (r Rule) CFA() int64 { return int64(r) >> cfaShift * word }

// Offset returns where from the register the base of the CFA is saved, in
// bytes, for kinds SPDeref and FPDeref.
func (r Rule) Offset() int64 {
	return int64(r<<(64-addendShift)) >> (64 - addendShift + cfaShift) * word
}

// Addend returns what is to be added to that base, in bytes, for kinds SPDeref
// and FPDeref.
func (r Rule) Addend() int64 { return int64(r) >> addendShift * word }

// String describes the rule.
func (r Rule) String() string {
	var cfa string
	switch k := r.Kind(); k {
	case SP, FP:
		cfa = fmt.Sprintf("cfa=%v%+d", k, r.CFA())
	case SPDeref, FPDeref:
		cfa = fmt.Sprintf("cfa=*(%s%+d)%+d", k.String()[1:], r.Offset(), r.Addend())
	case PLT:
		cfa = fmt.Sprintf("cfa=plt(%d)", r.Slot())
	case Reg:
		cfa = fmt.Sprintf("cfa=r%d%+d", r.Register(), r.CFA())
	default:
		return k.String()
	}
	switch r.FP() {
	case FPAtCFA:
		cfa += fmt.Sprintf(" fp=[cfa%+d]", r.Slot())
	case FPAtFP:
		cfa += fmt.Sprintf(" fp=[fp%+d]", r.Slot())
	case FPUnknown:
		cfa += " fp=?"
	}
	switch r.RA() {
	case RAAfterFP:
		cfa += " ra=after fp"
		if r.Kind() != Reg && r.Gap() != 0 {
			cfa += fmt.Sprintf("%+d", r.Gap())
		}
	case RAAtCFA:
		cfa += fmt.Sprintf(" ra=[cfa%+d]", r.Slot())
	case RALink:
		cfa += " ra=link"
	}
	return cfa
}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}
