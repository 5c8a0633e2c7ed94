package unwind

import "fmt"

// Rule says how to get from a frame to its caller's. Its numbers are in words of
// the machine, so that rules of any machine can be in one map. It is packed as
// bpf/tables.h reads it:
//
//	bits  0-3   [Kind]
//	bits  4-6   [FPRule]: the caller's frame pointer
//	bits  7-8   [RARule]: the return address
//	bits  9-13  number of the register of kind Reg, as DWARF counts; else the gap
//	            of RAAfterFP, signed, in words
//	bits 16-39  slot, signed, in words
//	bits 40-63  cfa, signed, in words; for kinds SPDeref and FPDeref the low 12
//	            bits are the offset and the high 12 the addend
//
// [Rule.Frame] gives the numbers in bytes.
type Rule uint64

// Rules that are only a kind.
const (
	RuleNone        = Rule(None)
	RuleSignal      = Rule(Signal)
	RuleSignalOld   = Rule(SignalOld)
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
	PLT                     // CFA = sp + a word, or two words from the byte slot of an entry of 16 bytes on
	Signal                  // the registers are in the kernel's signal frame at sp
	End                     // the outermost frame of a thread
	Reg                     // CFA = register + cfa; the register is known right below a signal frame only
	Unsupported             // there is a rule, of a kind that is not here
	SignalOld               // I386: as Signal, for a handler that got no siginfo; the return address is off the stack
)

var kindNames = [...]string{"none", "sp", "fp", "*sp", "*fp", "plt", "signal", "end", "reg", "unsupported", "old signal"}

// FPRule says where the frame pointer of the caller is: rbp, x29 or ebp.
type FPRule uint8

// The rules for the frame pointer.
const (
	FPSame    FPRule = iota // not changed
	FPAtCFA                 // saved at CFA + slot
	FPAtFP                  // saved at fp + slot
	FPUnknown               // lost, or not to be found in a simple way
)

// RARule says where the return address is. On AMD64 and I386 it always is
// RABelowCFA.
type RARule uint8

// The rules for the return address.
const (
	RABelowCFA RARule = iota // saved in the word below the CFA
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

// Kind returns the rule's kind.
func (r Rule) Kind() Kind { return Kind(r & 0xf) }

// FP returns where the caller's frame pointer is.
func (r Rule) FP() FPRule { return FPRule(r >> fpShift & 7) }

// RA returns where the return address is.
func (r Rule) RA() RARule { return RARule(r >> raShift & 3) }

// Register returns the DWARF number of the register of kind Reg.
func (r Rule) Register() uint8 { return uint8(r >> regShift & 0x1f) }

// gap is by how many words the return address of RAAfterFP is farther away than in
// the word after the caller's frame pointer; not for kind Reg.
func (r Rule) gap() int64 { return int64(r<<(64-gapEnd)) >> (64 - gapEnd + regShift) }

// slot is that of the rule in words, except for kind PLT, where it is the offset
// in an entry from which on a word more is on the stack.
func (r Rule) slot() int64 { return int64(r<<(64-cfaShift)) >> (64 - cfaShift + slotShift) }

// cfa is what to add for the CFA, in words; not for kinds SPDeref and FPDeref.
func (r Rule) cfa() int64 { return int64(r) >> cfaShift }

// offset is where from the register the base of the CFA is saved, in words, for
// kinds SPDeref and FPDeref.
func (r Rule) offset() int64 { return int64(r<<(64-addendShift)) >> (64 - addendShift + cfaShift) }

// addend is what to add to that base, in words, for kinds SPDeref and FPDeref.
func (r Rule) addend() int64 { return int64(r) >> addendShift }

// String describes the rule with its numbers in words.
func (r Rule) String() string { return r.Frame(1).String() }

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}
