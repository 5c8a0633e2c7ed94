package cover

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eachHere calls test for each function of the installed allocators.
func eachHere(t *testing.T, test func(t *testing.T, l *library, all []Function)) {
	t.Helper()
	for _, path := range here {
		t.Run(filepath.Base(path), func(t *testing.T) {
			l := installed(t, path)
			var all []Function
			for _, f := range functions {
				if entry, ok := l.exports[f.Name]; ok {
					f.Entry = entry
					all = append(all, f)
				}
			}
			test(t, l, all)
		})
	}
}

// outcomeOf is a plan or an error, for comparisons.
func outcomeOf(p *Plan, err error) any {
	if err != nil {
		return err.Error()
	}
	return *p
}

// A finder finds the plans that are found without what it remembers.
func TestFinder(t *testing.T) {
	eachHere(t, func(t *testing.T, l *library, all []Function) {
		want := map[string]any{}
		for _, f := range all {
			want[f.Name] = outcomeOf(Find(&l.Image, f, UsualCosts))
		}
		d := NewFinder(&l.Image)
		for _, f := range slices.Backward(all) { // callees are analysed by others than before
			if diff := cmp.Diff(want[f.Name], outcomeOf(d.Find(f, UsualCosts))); diff != "" {
				t.Errorf("%s (-alone +with others):\n%s", f.Name, diff)
			}
		}
	})
}

// The plans of glibc are the same on kinds of machines where a return probe costs between a tenth
// of a breakpoint and all of one, so that no start of a tracer waits for a measurement. Those of
// jemalloc are not.
func TestCostsOfMachines(t *testing.T) {
	eachHere(t, func(t *testing.T, l *library, all []Function) {
		d := NewFinder(&l.Image)
		for _, f := range all {
			if _, jemalloc := l.exports["mallctl"]; jemalloc {
				continue
			}
			want := outcomeOf(d.Find(f, UsualCosts))
			for _, c := range []Costs{{100, 10, 3500}, {100, 25, 400}, {100, 55, 400}, {100, 100, 10000}} {
				if diff := cmp.Diff(want, outcomeOf(d.Find(f, c))); diff != "" {
					t.Errorf("%s with %+v (-usual):\n%s", f.Name, c, diff)
				}
			}
		}
	})
}
