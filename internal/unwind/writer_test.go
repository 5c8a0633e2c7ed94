package unwind

import (
	"errors"
	"slices"
	"testing"

	"rtrace-bpf/trace"
)

func TestLimits(t *testing.T) {
	var w writer
	w.begin(0x1000, 8)
	if err := w.cover(0x1000, 0x1000+1<<32-1, RuleEnd); err != nil {
		t.Errorf("at the end of what fits: %v", err)
	}
	if err := w.cover(0x1000+1<<32-1, 0x1000+1<<32, RuleEnd); !errors.Is(err, trace.ErrLimit) || !syntax(err) {
		t.Errorf("beyond: %v", err)
	}
	w.Rows = make([]Row, MaxRows-2)
	if err := w.cover(0x2000, 0x2001, RuleEnd); err != nil {
		t.Errorf("the last row: %v", err)
	}
	w.Rows = make([]Row, MaxRows-1)
	if err := w.cover(0x2001, 0x2002, RuleSignal); !errors.Is(err, trace.ErrLimit) {
		t.Errorf("a row too many: %v", err)
	}
}

// TestNumbers checks that a rule has one number, whatever came between.
func TestNumbers(t *testing.T) {
	var w writer
	w.begin(0, 0)
	want := []Rule{RuleNone}
	for range 3 {
		for i := range 1000 {
			frame := Frame{Kind: SP, CFA: int64(8 * i)}
			rule := frame.Pack(8)
			n := w.number(rule)
			if int(n) == len(want) {
				want = append(want, rule)
			}
			if w.Rules[n] != rule {
				t.Fatalf("rule %v has number %d, which is %v", rule, n, w.Rules[n])
			}
		}
	}
	if !slices.Equal(w.Rules, want) || len(want) != 1001 {
		t.Errorf("%d rules, %d were new", len(w.Rules), len(want))
	}
}
