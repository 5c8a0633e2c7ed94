package reference

import "testing"

func TestSpace(t *testing.T) {
	mappings := []Mapping{
		{0x3000, 0x4000, Module{Bias: 3}},
		{0x1000, 0x2000, Module{Bias: 1}},
		{0x2000, 0x2800, Module{Bias: 2}},
	}
	s, err := NewSpace(mappings)
	if err != nil {
		t.Fatal(err)
	}
	mappings[0].Module.Bias = 99 // the space has its own
	want := map[uint64]uint64{0xfff: 0, 0x1000: 1, 0x1fff: 1, 0x2000: 2, 0x27ff: 2, 0x2800: 0, 0x2fff: 0, 0x3000: 3, 0x3fff: 3, 0x4000: 0, 0: 0, 1<<64 - 1: 0}
	for pc, bias := range want {
		if m, ok := s.Find(pc); m.Bias != bias || ok != (bias != 0) {
			t.Errorf("%#x: %+v, %v; want %d", pc, m, ok, bias)
		}
	}
	if _, ok := new(Space).Find(0x1000); ok {
		t.Error("found in an empty space")
	}
}

func TestBadSpaces(t *testing.T) {
	tests := map[string][]Mapping{
		"overlap": {{0x2000, 0x3000, Module{}}, {0x1000, 0x2001, Module{}}},
		"empty":   {{0x2000, 0x2000, Module{}}},
		"turned":  {{0x2000, 0x1000, Module{}}},
	}
	for name, mappings := range tests {
		if _, err := NewSpace(mappings); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
