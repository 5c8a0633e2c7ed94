package unwind

import (
	"cmp"
	"errors"
	"slices"
)

// ErrNoFrames reports that a file has no call frame information.
var ErrNoFrames = errors.New("no call frame information")

// Row means that Rules[Rule] applies from Table.Base+PC up to the next row.
type Row struct {
	PC   uint32
	Rule uint32
}

// Table is the rules for all addresses of a file.
type Table struct {
	// Base is the address, as linked, that rows are relative to: the lowest address that has a
	// rule.
	Base uint64
	// Word is the unit of the numbers in rules: how many bytes a saved register takes.
	Word int64
	// Rows ascend strictly by PC, and adjacent rows have different rules. Gaps between
	// functions have a row with RuleNone. So has the end of the last function, which is the
	// last row.
	Rows []Row
	// Rules holds distinct rules. The first is RuleNone.
	Rules []Rule

	Functions   int // FDEs that have rows
	Unsupported int // rows that became RuleUnsupported
	Broken      int // FDEs that could not be read, or not completely
}

// Find returns the rule that applies at addr, as linked.
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
