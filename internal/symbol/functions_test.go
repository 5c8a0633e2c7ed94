package symbol

import (
	"fmt"
	"testing"
)

// The later function counts, before and after functions are sorted.
func TestFunctions(t *testing.T) {
	for _, more := range []int{0, maxAdded, 10 * maxAdded} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			var f Functions
			if _, _, ok := f.Lookup(0x1000); ok {
				t.Error("there is a function where none was added")
			}
			f.Add("old", "/a.dll", 0x1000, 0x1100)
			f.Add("new", "", 0x1040, 0x1080)
			f.Add("", "/none.dll", 0x1000, 0x2000)
			f.Add("empty", "/none.dll", 0x1000, 0x1000)
			for i := range more {
				start := 0x10000 + uint64(i)*16
				f.Add(fmt.Sprint("f", i), "/a.dll", start, start+16)
				if name, module, ok := f.Lookup(start + 15); !ok || name != fmt.Sprint("f", i) || module != "/a.dll" {
					t.Fatalf("f%d is %q of %q, %v", i, name, module, ok)
				}
			}
			for _, tt := range []struct {
				addr         uint64
				name, module string
			}{
				{0xfff, "", ""},
				{0x1000, "old", "/a.dll"},
				{0x103f, "old", "/a.dll"},
				{0x1040, "new", ""},
				{0x107f, "new", ""},
				{0x1080, "old", "/a.dll"},
				{0x1100, "", ""},
			} {
				name, module, ok := f.Lookup(tt.addr)
				if name != tt.name || module != tt.module || ok != (tt.name != "") {
					t.Errorf("%#x is %q of %q, %v", tt.addr, name, module, ok)
				}
			}
		})
	}
}
