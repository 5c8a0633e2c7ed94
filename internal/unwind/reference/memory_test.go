package reference

import "testing"

func TestRaw(t *testing.T) {
	r := Raw{Addr: 0x1000, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	want := map[uint64]uint64{0x1000: 0x0807060504030201, 0x1001: 0x0908070605040302, 0x1002: 0x0a09080706050403}
	for _, addr := range []uint64{0, 0xff8, 0xfff, 0x1000, 0x1001, 0x1002, 0x1003, 0x100a, 1<<64 - 1} {
		if v, ok := r.Word(addr); v != want[addr] || ok != (want[addr] != 0) {
			t.Errorf("%#x: %#x, %v; want %#x", addr, v, ok, want[addr])
		}
	}
	for _, short := range []Raw{{}, {Addr: 0x1000, Data: make([]byte, 7)}} {
		if _, ok := short.Word(0x1000); ok {
			t.Errorf("a word of %d bytes", len(short.Data))
		}
	}
	top := Raw{Addr: 1<<64 - 8, Data: make([]byte, 8)}
	if _, ok := top.Word(1<<64 - 8); !ok {
		t.Error("the last word of all cannot be read")
	}
	if _, ok := top.Word(0); ok {
		t.Error("a word beyond the end of all")
	}
}

func TestLayers(t *testing.T) {
	l := Layers{words{8: 1}, words{8: 2, 16: 3}}
	for addr, want := range map[uint64]uint64{8: 1, 16: 3, 24: 0} {
		if v, ok := l.Word(addr); v != want || ok != (want != 0) {
			t.Errorf("%d: %d, %v; want %d", addr, v, ok, want)
		}
	}
}

func TestEndNames(t *testing.T) {
	seen := map[string]bool{}
	for e := Complete; e <= BadRule; e++ {
		seen[e.String()] = true
	}
	if len(seen) != int(BadRule) || seen[""] || End(200).String() != "end 200" {
		t.Errorf("%v, %v", seen, End(200))
	}
}
