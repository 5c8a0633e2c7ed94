package cfi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/unwind/cfi"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// TestSystemFiles compares every row of real files, with all registers, with readelf's output.
func TestSystemFiles(t *testing.T) {
	for _, name := range []string{"libc.so.6", "ld-linux-*.so.*", "libstdc++.so.6", "libcrypto.so.3", "libgcc_s.so.1"} {
		found, _ := filepath.Glob("/usr/lib/*-linux-gnu/" + name)
		for _, path := range found {
			t.Run(filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				compare(t, path, 3)
			})
		}
	}
}

func TestPrograms(t *testing.T) {
	for name, flags := range map[string][]string{
		"default":     nil,
		"static":      {"-static"},
		"realigned":   {"-mstackrealign", "-fomit-frame-pointer"},
		"debug_frame": {"-fno-asynchronous-unwind-tables"},
		"dwarf 4":     {"-fno-asynchronous-unwind-tables", "-gdwarf-4"},
	} {
		t.Run(name, func(t *testing.T) { compare(t, testutil.Build(t, "alloc", flags...), 3) })
	}
}

// TestI386 does the same for files of 32-bit x86.
func TestI386(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: programs for i386 are compiled on amd64 only")
	}
	for _, path := range []string{"/lib32/libc.so.6", "/lib32/ld-linux.so.2", "/usr/lib32/libstdc++.so.6", "/usr/lib32/libgcc_s.so.1"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(path); err != nil {
				t.Fatalf("%v (g++-multilib brings it)", err)
			}
			compare(t, path, 3)
		})
	}
	for name, flags := range map[string][]string{
		"O0":          {"-O0"},
		"O2":          {"-fomit-frame-pointer"},
		"no-pie":      {"-no-pie", "-fno-pie", "-fomit-frame-pointer"},
		"static":      {"-static"},
		"realigned":   {"-mstackrealign", "-fomit-frame-pointer"},
		"ibt":         {"-fcf-protection", "-Wl,-z,ibtplt,-z,lazy"},
		"debug_frame": {"-fno-asynchronous-unwind-tables"},
		"dwarf 4":     {"-fno-asynchronous-unwind-tables", "-gdwarf-4"},
	} {
		t.Run(name, func(t *testing.T) { compare(t, testutil.Build(t, "alloc", append(flags, "-m32")...), 3) })
	}
	t.Run("c++", func(t *testing.T) { compare(t, testutil.Build(t, "cxx", "-m32"), 10) })
}

func compare(t *testing.T, path string, least int) {
	t.Helper()
	f, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sections, err := cfi.Sections(f)
	if err != nil {
		t.Fatal(err)
	}
	want := testutil.ReadFrames(t, path)
	if len(want) < least {
		t.Fatalf("readelf found %d functions", len(want))
	}
	for _, s := range sections {
		for fde, err := range s.FDEs {
			if err != nil {
				t.Fatal(err)
			}
			if len(want) == 0 {
				t.Fatalf("readelf has no function at %#x", fde.Start)
			}
			if err := same(fde, &want[0], s.Machine); err != nil {
				t.Fatal(err)
			}
			want = want[1:]
		}
	}
	for _, f := range want { // sections that are not used
		if f.Section != ".debug_frame" {
			t.Fatalf("no function at %#x", f.Start)
		}
	}
}

// same compares a function with readelf's.
func same(fde *cfi.FDE, want *testutil.Frame, m cfi.Machine) error {
	if fde.Start != want.Start || fde.End != want.End {
		return fmt.Errorf("function %#x to %#x, readelf prints %#x to %#x", fde.Start, fde.End, want.Start, want.End)
	}
	// readelf prints a last row for what follows a hand-written function.
	if n := len(want.Rows); n > 1 && want.Rows[n-1].Start == want.End {
		want.Rows = want.Rows[:n-1]
	}
	i := 0
	err := fde.Rows(func(r *cfi.Row) error {
		if i == len(want.Rows) {
			return fmt.Errorf("%#x: readelf has no row", r.Start)
		}
		w := want.Rows[i]
		i++
		if i == len(want.Rows) && r.End != want.End || i < len(want.Rows) && r.End != want.Rows[i].Start {
			return fmt.Errorf("%#x: row ends at %#x", r.Start, r.End)
		}
		return sameRow(r, &w, m)
	})
	if err == nil && i != len(want.Rows) && fde.Start != fde.End {
		return fmt.Errorf("%#x: %d rows, readelf has %d", fde.Start, i, len(want.Rows))
	}
	return err
}

func sameRow(r *cfi.Row, want *testutil.FrameRow, m cfi.Machine) error {
	cfa := "exp"
	if r.CFA.Expr == nil {
		cfa = fmt.Sprintf("%s%+d", m.Register(r.CFA.Reg), r.CFA.Offset)
	}
	if r.Start != want.Start || cfa != want.CFA {
		return fmt.Errorf("%#x: CFA %s, readelf prints %#x %s", r.Start, cfa, want.Start, want.CFA)
	}
	for i := range r.Rules {
		name := m.Register(uint8(i))
		if uint8(i) == m.RA() {
			name = "ra"
		}
		got, column := text(&r.Rules[i], m), want.Registers[name]
		if column == "" {
			column = "u"
		}
		if got != pcs.Replace(column) {
			return fmt.Errorf("%#x: %s is %s, readelf prints %s", r.Start, name, got, column)
		}
	}
	return nil
}

// pcs replaces names that readelf has for the register ra.
var pcs = strings.NewReplacer("rip", "ra", "eip", "ra")

// text returns a rule in readelf's format.
func text(r *cfi.Rule, m cfi.Machine) string {
	switch r.How {
	case cfi.Unset, cfi.Undefined:
		return "u"
	case cfi.SameValue:
		return "s"
	case cfi.AtCFA:
		return fmt.Sprintf("c%+d", r.Offset)
	case cfi.CFAOffset:
		return fmt.Sprintf("v%+d", r.Offset)
	case cfi.Register:
		return m.Register(r.Reg)
	case cfi.AtExpression:
		return "exp"
	}
	return "vexp"
}
