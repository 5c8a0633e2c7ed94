package unwind

import (
	"debug/elf"
	"testing"
)

// The code at the entry point of a loader or a static program is outermost, unless an FDE
// covers it.
func TestEntry(t *testing.T) {
	const none = "10: cfa=sp+8; 20: none; 40: cfa=sp+8; 50: none"
	tests := map[string]struct {
		begin uint64
		needs bool
		want  string
	}{
		"between functions": {0x30, false, "10: cfa=sp+8; 20: none; 30: end; 40: cfa=sp+8; 50: none"},
		"after one":         {0x20, false, "10: cfa=sp+8; 20: end; 40: cfa=sp+8; 50: none"},
		"with an FDE":       {0x40, false, none},
		"at the end":        {0x50, false, "10: cfa=sp+8; 20: none; 40: cfa=sp+8; 50: end; 90: none"},
		"of a library":      {0x30, true, none},
		"elsewhere":         {0x1000, false, none},
	}
	for name, test := range tests {
		f := newMade(elf.EM_X86_64)
		f.function(0x10, 0x20)
		f.function(0x40, 0x50)
		f.begin, f.needs = codeAddr+test.begin, test.needs
		if got := f.table(t).text(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
