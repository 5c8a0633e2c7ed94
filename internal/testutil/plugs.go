package testutil

import (
	"os"
	"testing"
)

// OmitFramePointers has the compiler leave no frame pointers in functions.
const OmitFramePointers = "-fomit-frame-pointer"

// WithoutTables has the compiler leave out what stacks can be unwound by. The caller must
// not change it.
var WithoutTables = []string{"-g0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}

// Plugs builds two libraries with the same functions, whose frames have different sizes.
func Plugs(t testing.TB, build Builder) (small, large string) {
	t.Helper()
	flags := []string{"-shared", "-fPIC", "-g0", OmitFramePointers}
	return build(t, "plugs", append(flags, "-DROOM=200")...),
		build(t, "plugs", append(flags, "-DROOM=2008")...)
}

// CopyFile copies a program or library.
func CopyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// ReplaceFile puts a copy of another file in the place of one. The former one is still
// mapped where it was.
func ReplaceFile(t testing.TB, path, other string) {
	t.Helper()
	CopyFile(t, other, path+".new")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
