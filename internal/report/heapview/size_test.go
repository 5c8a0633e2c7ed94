package heapview

import "testing"

// counter counts the bytes written.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// A page of a million calls stays below 5 MB, both for short lifetimes at few
// addresses and for blocks that all stay.
func TestPageSize(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		w := build(11, 1_000_000, lasting)
		var size counter
		if err := WriteHTML(&size, w.m, w.curve, w.options(1_000_000)); err != nil {
			t.Fatal(err)
		}
		if size > 5_000_000 {
			t.Errorf("lasting %v: %d bytes", lasting, size)
		}
		t.Logf("lasting %v: %d bytes, step %d", lasting, size, w.m.Step())
	}
}
