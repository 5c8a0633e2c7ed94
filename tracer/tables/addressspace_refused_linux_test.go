package tables

import "testing"

// A list of mappings that cannot be installed leaks nothing: its tables are released when
// the mappings go.
func TestSpaceThatCannotBeInstalled(t *testing.T) {
	w := newWorld(t, nil)
	s := w.looping(0)
	all := w.mapped(s)
	size := s.Inner.ValueSize
	s.Inner.ValueSize = 0
	for range 2 {
		if _, err := s.update(all, nil); err == nil {
			t.Fatal("a list without values was installed")
		}
	}
	s.Inner.ValueSize = size
	w.update(s, all, nil, true)
	w.counted(s)
	w.update(s, nil, nil, true)
	if n := len(w.tables.Files); n > 0 {
		t.Errorf("%d files are known though no process maps them", n)
	}
}
