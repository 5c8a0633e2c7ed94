package unwind

import "fmt"

// Rule is how to get from a frame to its caller's frame. Its numbers are in words of the
// machine, so that rules of any machine can be in one map. It is packed as bpf/tables.h reads
// it:
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
// [Rule.Frame] returns the numbers in bytes.
type Rule uint64

// Rules that are only a kind.
const (
	RuleNone        = Rule(None)
	RuleSignal      = Rule(Signal)
	RuleSignalOld   = Rule(SignalOld)
	RuleEnd         = Rule(End)
	RuleUnsupported = Rule(Unsupported)
)

// Kind is how to compute the CFA: the stack pointer of the caller before the call.
type Kind uint8

// The kinds of rules.
const (
	None        Kind = iota // there is no rule for the address
	SP                      // CFA = sp + cfa
	FP                      // CFA = fp + cfa
	SPDeref                 // CFA = *(sp + offset) + addend
	FPDeref                 // CFA = *(fp + offset) + addend
	PLT                     // CFA = sp + a word, or + two words from byte slot of a 16-byte entry on
	Signal                  // the registers are in the kernel's signal frame at sp
	End                     // the outermost frame of a thread
	Reg                     // CFA = register + cfa; the register is known only right below a signal frame
	Unsupported             // there is a rule, but none of these kinds can express it
	SignalOld               // I386: like Signal, for a handler that got no siginfo; the return address is off the stack
)

var kindNames = [...]string{"none", "sp", "fp", "*sp", "*fp", "plt", "signal", "end", "reg", "unsupported", "old signal"}

// FPRule is where the frame pointer of the caller is: rbp, x29 or ebp.
type FPRule uint8

// The rules for the frame pointer.
const (
	FPSame    FPRule = iota // not changed
	FPAtCFA                 // saved at CFA + slot
	FPAtFP                  // saved at fp + slot
	FPUnknown               // lost, or not to be found in a simple way
)

// RARule is where the return address is. On AMD64 and I386 it is always RABelowCFA.
type RARule uint8

// The rules for the return address.
const (
	RABelowCFA RARule = iota // saved in the word below the CFA
	RAAfterFP                // saved in the word after the caller's frame pointer, or a gap farther
	RAAtCFA                  // saved at CFA + slot; the frame pointer is not saved
	RALink                   // in the link register
)

// Bit positions of the fields.
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

// gap is how many words the return address of RAAfterFP is above the word after the caller's
// frame pointer; not for kind Reg.
func (r Rule) gap() int64 { return int64(r<<(64-gapEnd)) >> (64 - gapEnd + regShift) }

// slot is the rule's slot in words. For kind PLT it is the offset in an entry from which on one
// more word is on the stack.
func (r Rule) slot() int64 { return int64(r<<(64-cfaShift)) >> (64 - cfaShift + slotShift) }

// cfa is what to add to get the CFA, in words; not for kinds SPDeref and FPDeref.
func (r Rule) cfa() int64 { return int64(r) >> cfaShift }

// offset is the offset from the register at which the base of the CFA is saved, in words, for
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
