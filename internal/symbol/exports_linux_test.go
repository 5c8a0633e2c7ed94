package symbol

import (
	"debug/elf"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// A library and a program export what debug/elf lists in .dynsym, and nothing else.
func TestExported(t *testing.T) {
	for _, path := range []string{testutil.Build(t, "plug", "-shared", "-fPIC"), testutil.Build(t, "prefixes"), testutil.Build(t, "prefixes", "-rdynamic")} {
		f, oracle := openedTwice(t, path)
		dynamic, err := oracle.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		offered := map[string]uint64{}
		for _, s := range dynamic {
			if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
				offered[s.Name] = s.Value
			}
		}
		all, err := oracle.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		names := 0
		for _, s := range all {
			if s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
				continue
			}
			names++
			got, ok := f.Exported(s.Name)
			if want, offers := offered[s.Name]; ok != offers || ok && got.Addr != want {
				t.Errorf("%s: %s is exported: %v at %#x, want %v at %#x", filepath.Base(path), s.Name, ok, got.Addr, offers, want)
			}
		}
		if _, ok := f.Exported("no such function"); ok || names == 0 {
			t.Errorf("%s: %d functions, and one that is not", path, names)
		}
	}
}

// The dynamic segment is where the section of that name is. A static program has none.
func TestDynamic(t *testing.T) {
	f, oracle := openedTwice(t, testutil.Build(t, "plug", "-shared", "-fPIC"))
	want := oracle.Section(".dynamic")
	if addr, size, ok := f.Dynamic(); !ok || addr != want.Addr || size != want.Size {
		t.Errorf("at %#x, %d bytes, want %#x and %d", addr, size, want.Addr, want.Size)
	}
	static, _ := openedTwice(t, testutil.Build(t, "every", "-static"))
	if _, _, ok := static.Dynamic(); ok {
		t.Error("a static program has a dynamic segment")
	}
}

// openedTwice opens a file with this package and with debug/elf.
func openedTwice(t *testing.T, path string) (*File, *elf.File) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	oracle, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { oracle.Close() })
	return f, oracle
}
