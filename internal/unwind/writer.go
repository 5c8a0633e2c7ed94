package unwind

import (
	"fmt"
	"math"

	"rtrace-bpf/trace"
)

// alignment is what compilers align functions to.
const alignment = 16

// errFull reports that a table is too large for the program in the kernel.
var errFull error = &trace.SyntaxError{Format: "elf", Err: fmt.Errorf("rows or addresses of an unwind table: %w", trace.ErrLimit)}

// writer adds rows to a table.
type writer struct {
	Table
	end     uint64 // end of the covered addresses
	last    Rule   // of the last row
	numbers map[Rule]uint32
	recent  [64]numbered // by hash of the rule
}

// numbered is a rule and its index in Rules.
type numbered struct {
	rule   Rule
	number uint32
}

// begin starts a table at the given address, with memory for the given number of rows.
func (w *writer) begin(base uint64, rows int) {
	w.Base, w.end = base, base
	w.Rows = make([]Row, 0, rows)
	w.Rules = []Rule{RuleNone}
	w.numbers = map[Rule]uint32{RuleNone: 0}
}

// cover assigns rule to the addresses [start, end), which must come after all others.
func (w *writer) cover(start, end uint64, rule Rule) error {
	if end-w.Base > math.MaxUint32 || len(w.Rows) > MaxRows-2 {
		return errFull
	}
	if start > w.end && !w.padding(start, rule) {
		w.row(w.end, RuleNone)
	}
	w.row(start, rule)
	w.end = end
	return nil
}

// padding reports whether the gap before start is there only for alignment. Code without an FDE
// fits into such a gap only if it is not aligned. Where such code begins as functions do, the
// rule is right.
func (w *writer) padding(start uint64, rule Rule) bool {
	return start-w.end < alignment && start%alignment == 0 && w.last == rule && rule != RuleSignal && rule != RuleSignalOld
}

// finish completes the table.
func (w *writer) finish() { w.row(w.end, RuleNone) }

// row adds a row, unless its rule is that of the last one.
func (w *writer) row(pc uint64, rule Rule) {
	if len(w.Rows) > 0 && rule == w.last {
		return
	}
	if rule == RuleUnsupported {
		w.Unsupported++
	}
	w.last = rule
	w.Rows = append(w.Rows, Row{PC: uint32(pc - w.Base), Rule: w.number(rule)})
}

// number returns the index of a rule in Rules.
func (w *writer) number(rule Rule) uint32 {
	recent := &w.recent[uint64(rule)*0x9e3779b97f4a7c15>>58]
	if recent.rule == rule { // RuleNone is 0
		return recent.number
	}
	n, ok := w.numbers[rule]
	if !ok {
		n = uint32(len(w.Rules))
		w.Rules = append(w.Rules, rule)
		w.numbers[rule] = n
	}
	*recent = numbered{rule, n}
	return n
}
