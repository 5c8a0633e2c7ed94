package live

import "testing"

// TestValues checks that each value is found under its number until it is
// taken, and that numbers are reused.
func TestValues(t *testing.T) {
	var (
		s     Values[uint64]
		kept  = make(map[uint64]uint64)
		order []uint64
		x     = uint64(1)
	)
	for i := range uint64(100_000) {
		x = x*6364136223846793005 + 1442695040888963407
		if len(order) < 5000 || x>>63 == 0 && len(order) < 10_000 {
			i++ // 0 is not in use
			n := s.Add(i)
			if _, ok := kept[n]; ok {
				t.Fatalf("number %d is used twice", n)
			}
			kept[n] = i
			order = append(order, n)
			continue
		}
		at := int(x >> 33 % uint64(len(order)))
		n := order[at]
		if got := *s.At(n); got != kept[n] {
			t.Fatalf("number %d has %d, want %d", n, got, kept[n])
		}
		if got := s.Take(n); got != kept[n] {
			t.Fatalf("number %d had %d, want %d", n, got, kept[n])
		}
		delete(kept, n)
		order[at] = order[len(order)-1]
		order = order[:len(order)-1]
	}
	n := uint64(0)
	for v := range s.All() {
		if *v != kept[n] { // 0 if it is not in use
			t.Fatalf("All has %d under number %d, want %d", *v, n, kept[n])
		}
		n++
	}
	if n != uint64(s.Len()) {
		t.Errorf("Len returns %d, All yields %d values", s.Len(), n)
	}
	if n > 10_000 {
		t.Errorf("%d numbers for 10,000 values", n)
	}
}

// TestFewValues: the first values take no room for thousands.
func TestFewValues(t *testing.T) {
	var s Values[uint64]
	s.Add(1)
	n, v := s.New()
	*v = 2
	if *s.At(n) != 2 || s.Used() != 2 || cap(s.chunks[0]) > 8 {
		t.Errorf("%d values, room for %d", s.Used(), cap(s.chunks[0]))
	}
	s.Drop(n)
	if s.Used() != 1 || s.Len() != 2 {
		t.Errorf("%d values of %d after one was dropped", s.Used(), s.Len())
	}
	if again, v := s.New(); again != n || *v != 0 {
		t.Errorf("number %d with %d, want %d with 0", again, *v, n)
	}
}
