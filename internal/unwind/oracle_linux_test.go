package unwind

import (
	"cmp"
	"debug/elf"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// installed returns those files of this machine that match.
func installed(patterns ...string) (all []string) {
	for _, p := range patterns {
		found, _ := filepath.Glob(p)
		all = append(all, found...)
	}
	return all
}

// TestSystemFiles compares the tables of real files with readelf's output.
func TestSystemFiles(t *testing.T) {
	const lib = "/usr/lib/*-linux-gnu/"
	for _, path := range installed(lib+"libc.so.6", lib+"ld-linux-*.so.*", lib+"libstdc++.so.6", lib+"libcrypto.so.3",
		lib+"libm.so.6", lib+"libgcc_s.so.1", "/usr/bin/python3", "/usr/bin/gdb") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			compare(t, path)
		})
	}
}

// TestPrograms does the same for programs built in several ways.
func TestPrograms(t *testing.T) {
	builds := map[string][]string{
		"default":     nil,
		"no fp":       {"-fomit-frame-pointer"},
		"O0":          {"-O0"},
		"static":      {"-static"},
		"static-pie":  {"-static-pie"},
		"no-pie":      {"-no-pie"},
		"realigned":   {"-mstackrealign", "-fomit-frame-pointer"},
		"debug_frame": {"-fno-asynchronous-unwind-tables", "-fno-unwind-tables"},
	}
	for name, flags := range builds {
		t.Run(name, func(t *testing.T) { compare(t, testutil.Build(t, "alloc", flags...)) })
	}
	t.Run("c++", func(t *testing.T) { compare(t, testutil.Build(t, "cxx")) })
}

// build builds the table of a file.
func build(t testing.TB, path string) *Table {
	t.Helper()
	f, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := Build(f)
	if err != nil {
		t.Fatal(err)
	}
	if table.Broken > 0 {
		t.Errorf("%d broken entries", table.Broken)
	}
	return table
}

// machine returns the machine of a file.
func machine(t *testing.T, path string) elf.Machine {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Machine
}

// entry returns the entry point of a file, or 0 if it has none.
func entry(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Entry
}

// compare checks a table at both ends of each row that readelf prints, and that there is
// nothing between the functions. more holds functions without an FDE.
func compare(t *testing.T, path string, more ...testutil.Frame) {
	t.Helper()
	table, frames := build(t, path), append(testutil.ReadFrames(t, path), more...)
	checkTable(t, table)
	frames = ordered(frames)
	reg := registersOf[machine(t, path)]
	if table.Word != reg.word {
		t.Errorf("words of %d bytes", table.Word)
	}
	if len(frames) < 3 {
		t.Fatalf("readelf found %d functions", len(frames))
	}
	bad := 0
	check := func(addr uint64, what any, want ...string) {
		t.Helper()
		if got := table.Find(addr).Frame(table.Word).String(); !slices.Contains(want, got) {
			if bad++; bad < 20 {
				t.Errorf("%#x: rule %q, readelf prints %q (%v)", addr, got, want, what)
			}
		}
	}
	begin := entry(t, path)
	nothing := func(addr uint64, what string) {
		t.Helper()
		if begin == 0 || addr-begin >= entryBytes { // see TestEntry
			check(addr, what, "none")
		}
	}
	end := uint64(0)
	for _, f := range frames {
		if gap := f.Start - end; gap >= 16 || gap > 0 && f.Start%16 != 0 {
			nothing(end, "after a function")
			nothing(f.Start-1, "before a function")
		}
		end = f.End
		for i, row := range f.Rows {
			last := f.End - 1
			if i+1 < len(f.Rows) {
				last = f.Rows[i+1].Start - 1
			}
			want := expected(reg, &f, row)
			check(row.Start, row, want...)
			check(last, row, want...)
		}
	}
	nothing(end, "after all functions")
}

// ordered returns the frames of a table, sorted by address and without overlaps: what two cover
// belongs to the later one.
func ordered(frames []testutil.Frame) []testutil.Frame {
	eh := slices.ContainsFunc(frames, func(f testutil.Frame) bool { return f.Section == ".eh_frame" })
	frames = slices.DeleteFunc(frames, func(f testutil.Frame) bool { return f.Start == f.End || f.Start == 0 && eh })
	slices.SortStableFunc(frames, func(a, b testutil.Frame) int { return cmp.Compare(a.Start, b.Start) })
	frames = slices.CompactFunc(frames, func(a, b testutil.Frame) bool { return a.Start == b.Start })
	for i := range frames[:len(frames)-1] {
		f := &frames[i]
		f.End = min(f.End, frames[i+1].Start)
		f.Rows = slices.DeleteFunc(f.Rows, func(r testutil.FrameRow) bool { return r.Start >= f.End })
	}
	return frames
}

// checkTable checks what is true of any table.
func checkTable(t testing.TB, table *Table) {
	t.Helper()
	if err := invalid(table); err != nil {
		t.Error(err)
	}
}
