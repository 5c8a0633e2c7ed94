package unwind

import (
	"errors"
	"fmt"
	"slices"
)

// invalid returns what is wrong with a table, or nil.
func invalid(table *Table) error {
	if len(table.Rows) < 2 || table.Rows[0].PC != 0 || table.Rules[0] != RuleNone {
		return fmt.Errorf("table of %d rows begins wrong", len(table.Rows))
	}
	if table.Word != 8 && table.Word != 4 {
		return fmt.Errorf("words of %d bytes", table.Word)
	}
	if last := table.Rows[len(table.Rows)-1]; last.Rule != 0 {
		return errors.New("the last row does not end the table")
	}
	for i := range table.Rows {
		if int(table.Rows[i].Rule) >= len(table.Rules) {
			return fmt.Errorf("row %d has rule %d of %d", i, table.Rows[i].Rule, len(table.Rules))
		}
		if i > 0 && (table.Rows[i].PC <= table.Rows[i-1].PC || table.Rows[i].Rule == table.Rows[i-1].Rule) {
			return fmt.Errorf("rows %d and %d are %v and %v", i-1, i, table.Rows[i-1], table.Rows[i])
		}
	}
	rules := slices.Sorted(slices.Values(table.Rules))
	if len(slices.Compact(rules)) != len(table.Rules) {
		return errors.New("rules are there more than once")
	}
	return nil
}
