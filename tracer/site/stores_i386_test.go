package site

import "testing"

// TestStoreSizes checks how many bytes each form of store writes. If a size were too small,
// overwritten words would count as kept.
func TestStoreSizes(t *testing.T) {
	for _, c := range []struct {
		code string
		size int
	}{
		{"88 44 24 04", 1}, // mov
		{"66 89 44 24 04", 2},
		{"89 44 24 04", 4},
		{"c6 44 24 04 01", 1},
		{"66 c7 44 24 04 01 00", 2},
		{"c7 44 24 04 01 00 00 00", 4},
		{"66 8c 5c 24 04", 2},    // mov %ds
		{"0f 38 f1 44 24 04", 4}, // movbe
		{"0f c3 44 24 04", 4},    // movnti
		{"0f 94 44 24 04", 1},    // sete
		{"00 44 24 04", 1},       // add
		{"66 01 44 24 04", 2},
		{"83 44 24 04 01", 4},
		{"80 64 24 04 01", 1}, // and
		{"fe 44 24 04", 1},    // inc
		{"ff 44 24 04", 4},
		{"f6 54 24 04", 1},       // not
		{"f7 5c 24 04", 4},       // neg
		{"d1 64 24 04", 4},       // shl
		{"0f a4 44 24 04 03", 4}, // shld
		{"87 44 24 04", 4},       // xchg
		{"86 44 24 04", 1},
		{"0f 29 44 24 04", 16}, // movaps, movups, movapd, movupd
		{"0f 11 44 24 04", 16},
		{"66 0f 29 44 24 04", 16},
		{"66 0f 11 44 24 04", 16},
		{"66 0f 7f 44 24 04", 16}, // movdqa, movdqu
		{"f3 0f 7f 44 24 04", 16},
		{"66 0f d6 44 24 04", 8}, // movq
		{"0f 7f 44 24 04", 8},
		{"66 0f 7e 44 24 04", 4}, // movd
		{"0f 7e 44 24 04", 4},
		{"f3 0f 11 44 24 04", 4}, // movss, movsd
		{"f2 0f 11 44 24 04", 8},
		{"0f 13 44 24 04", 8}, // movlps, movhps, movlpd, movhpd
		{"0f 17 44 24 04", 8},
		{"66 0f 13 44 24 04", 8},
		{"66 0f 17 44 24 04", 8},
	} {
		in := x86{bits: 32}.decode(code(t, c.code), 0)
		fx := &in.fx
		if !fx.stores || !fx.mem.known || fx.mem.base != rsp || fx.mem.disp != 4 || fx.mem.size != c.size {
			t.Errorf("%s: %+v, want %d bytes", c.code, fx, c.size)
		}
	}
}
