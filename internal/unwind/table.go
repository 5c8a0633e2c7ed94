package unwind

import (
	"cmp"
	"errors"
	"slices"
)

// ErrNoFrames says that a file has no call frame information.
var ErrNoFrames = errors.New("no call frame information")

// Row says that from Table.Base+PC on, up to the next row, Rules[Rule] applies.
type Row struct {
	PC   uint32
	Rule uint32
}

// Table is the rules for all addresses of a file.
type Table struct {
	// Base is the address, as linked, that rows count from: the lowest one
	// that has a rule.
	Base uint64
	// Word is the unit of the numbers in rules: how many bytes the machine saves
	// a register in.
	Word int64
	// Rows ascend strictly by PC, and neighbours differ in rule. Gaps between
	// functions have a row with RuleNone, and the last row has it: there the
	// last function ends.
	Rows []Row
	// Rules are distinct. The first is RuleNone.
	Rules []Rule

	Functions   int // FDEs that rows were made of
	Unsupported int // rows that became RuleUnsupported
	Broken      int // FDEs that could not be read, or not to their end
}

// Find returns the rule that holds at addr, as linked.
func (t *Table) Find(addr uint64) Rule {
	if addr < t.Base || addr-t.Base > 1<<32-1 {
		return RuleNone
	}
	i, found := slices.BinarySearchFunc(t.Rows, uint32(addr-t.Base), func(r Row, pc uint32) int { return cmp.Compare(r.PC, pc) })
	if !found {
		i--
	}
	return t.Rules[t.Rows[i].Rule]
}
