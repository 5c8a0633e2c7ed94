package symbol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExportedVersions(t *testing.T) {
	f := standard()
	f.symtab = []forged{
		{name: "hidden", addr: codeAddr, size: 8, info: local | fn},
		{name: "inner", addr: codeAddr + 8, size: 8, info: global | fn},
	}
	f.dynsym = []forged{
		{name: "pick", addr: codeAddr + 0x20, size: 1, info: global | fn, version: 2 | versionHidden},
		{name: "pick", addr: codeAddr + 0x30, size: 2, info: global | fn, version: 3},
		{name: "pick", addr: codeAddr + 0x40, size: 3, info: global | fn, version: 4 | versionHidden},
		{name: "only", addr: codeAddr + 0x50, size: 4, info: weak | fn, version: 2 | versionHidden},
		{name: "chosen", addr: codeAddr + 0x60, size: 5, info: global | ifn},
		{name: "other", addr: codeAddr + 0x70, size: 6, info: global | fn},
		{name: "data", addr: codeAddr + 0x80, size: 6, info: global | object},
	}
	file := f.file(t)
	got := map[string]Symbol{}
	for _, name := range []string{"hidden", "inner", "pick", "only", "chosen", "data", "missing"} {
		if sym, ok := file.Exported(name); ok {
			got[name] = sym
		}
	}
	want := map[string]Symbol{
		"pick":   {Name: "pick", Addr: codeAddr + 0x30, Size: 2, Global: true},
		"only":   {Name: "only", Addr: codeAddr + 0x50, Size: 4, Global: true},
		"chosen": {Name: "chosen", Addr: codeAddr + 0x60, Size: 5, IFunc: true, Global: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
