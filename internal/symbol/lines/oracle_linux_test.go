package lines

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
)

// run runs a program and returns its output.
func run(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testutil.Installed(t, args[0]), args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return string(out)
}

// compile builds a program of testdata.
func compile(t testing.TB, compiler, source string, flags ...string) string {
	t.Helper()
	if strings.HasSuffix(source, ".cc") {
		compiler = map[string]string{"gcc": "g++", "clang": "clang++"}[compiler]
	}
	out := filepath.Join(t.TempDir(), "prog")
	run(t, "", append([]string{compiler, "-o", out, filepath.Join("testdata", source)}, flags...)...)
	return out
}

// table opens a file and reads its debugging information.
func table(t testing.TB, root, path string) (*Table, *symbol.File) {
	t.Helper()
	f, err := symbol.OpenIn(root, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	info, err := Read(f, MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	tab := New(info, f)
	if err := tab.Err(); err != nil {
		t.Error(err)
	}
	return tab, f
}

// section returns the addresses of a section.
func section(t testing.TB, path, name string) (start, end uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(name)
	if s == nil {
		t.Fatalf("no section %s", name)
	}
	return s.Addr, s.Addr + s.Size
}

// place is a frame as addr2line prints it.
type place struct{ function, file, line string }

// ask runs another program to get the frames of addresses.
func ask(t testing.TB, path string, addrs []uint64, args ...string) map[uint64][]place {
	t.Helper()
	var in strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	lines := strings.Split(strings.TrimSuffix(run(t, in.String(), append(args, "-e", path)...), "\n"), "\n")
	found := map[uint64][]place{}
	at := uint64(0)
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "0x") {
			var err error
			if at, err = strconv.ParseUint(lines[i], 0, 64); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, _, _ := strings.Cut(lines[i+1], " (discriminator")
		colon := strings.LastIndexByte(text, ':')
		p := place{lines[i], text[:colon], text[colon+1:]}
		if p.function == "??" {
			p.function = ""
		}
		if p.file == "??" {
			p.file = ""
		}
		if p.line == "?" {
			p.line = "0"
		}
		found[at] = append(found[at], p)
		i++
	}
	return found
}

// places returns frames in the form in which addr2line prints them.
func places(frames []Frame) (all []place) {
	for _, f := range frames {
		all = append(all, place{f.Function, f.File, strconv.Itoa(f.Line)})
	}
	return all
}

// compare compares the frames of addresses with those of addr2line. Where they differ,
// llvm-symbolizer must agree with ours.
func compare(t *testing.T, tab *Table, f *symbol.File, path string, addrs []uint64) {
	t.Helper()
	want := addr2line(t, path, addrs)
	inlined, known := 0, 0
	var differ []uint64
	for _, addr := range addrs {
		frames := tab.AppendFrames(nil, addr)
		if len(frames) > 0 {
			known++
		}
		if len(frames) > 1 {
			inlined++
		}
		if !same(tab, f, addr, frames, want[addr]) {
			differ = append(differ, addr)
		}
	}
	var second map[uint64][]place
	if len(differ) > 0 {
		second = symbolizer(t, path, differ)
	}
	wrong := 0
	for _, addr := range differ {
		frames := clean(tab.AppendFrames(nil, addr))
		if same(tab, f, addr, frames, second[addr]) {
			continue
		}
		if wrong++; wrong < 10 {
			t.Errorf("%#x is\n %v, addr2line prints\n %v, llvm-symbolizer\n %v", addr, places(frames), want[addr], second[addr])
		}
	}
	t.Logf("%d addresses, %d known, %d with inlined calls, %d differ from addr2line, %d also from llvm-symbolizer", len(addrs), known, inlined, len(differ), wrong)
	if known == 0 || inlined == 0 {
		t.Error("too little is known")
	}
	if err := tab.Err(); err != nil {
		t.Error(err)
	}
}

// symbolizer asks LLVM for the frames of addresses.
func symbolizer(t testing.TB, path string, addrs []uint64) map[uint64][]place {
	t.Helper()
	found := ask(t, path, addrs, "llvm-symbolizer", "-a", "--no-demangle", "--output-style=GNU")
	for _, all := range found {
		for i := range all {
			if all[i].file != "" {
				all[i].file = filepath.Clean(all[i].file)
			}
		}
	}
	return found
}

// addr2line asks binutils for the frames of addresses.
func addr2line(t testing.TB, path string, addrs []uint64) map[uint64][]place {
	t.Helper()
	return ask(t, path, addrs, "addr2line", "-a", "-f", "-i")
}

// clean simplifies the paths of frames.
func clean(frames []Frame) []Frame {
	for i := range frames {
		if frames[i].File != "" {
			frames[i].File = filepath.Clean(frames[i].File)
		}
	}
	return frames
}

// same compares frames. Names may differ where addr2line uses the name of a symbol: where
// it knows no function, the nearest symbol, however far away; for the outermost function,
// any symbol at its address; for an inlined function without a linkage name, that of the
// outermost function.
func same(tab *Table, f *symbol.File, addr uint64, got []Frame, want []place) bool {
	if len(got) == 0 {
		return len(want) == 1 && want[0].line == "0"
	}
	if len(got) != len(want) {
		return false
	}
	symbols := []string{}
	s, ok := f.Lookup(addr)
	if ok {
		for _, alias := range f.Aliases(s.Addr) {
			symbols = append(symbols, alias.Name)
		}
	}
	for i := range got {
		g, w := &got[i], &want[i]
		if strconv.Itoa(g.Line) != w.line || g.Line != 0 && g.File != w.file || g.Inlined != (i < len(got)-1) {
			return false
		}
		switch {
		case g.Function == w.function:
		case i == 0 && g.Inlined && !decorated(g.Function) && g.Function != "":
			if !slices.Contains(symbols, w.function) {
				return false
			}
		case i == len(got)-1 && ok:
			if !slices.Contains(append(symbols, outermost(tab, addr)...), g.Function) {
				return false
			}
		case g.Function != "" || ok:
			return false
		}
	}
	return true
}

// outermost returns the names that units give the function whose code is at addr.
func outermost(tab *Table, addr uint64) (names []string) {
	for i := range tab.units {
		d := tab.units[i].data
		if d == nil {
			continue
		}
		n := d.functions.find(addr)
		for n >= 0 && d.functions.nodes[n].inlined {
			n = d.functions.nodes[n].parent
		}
		if n >= 0 {
			names = append(names, tab.nameIn(&tab.units[i], d.functions.nodes[n].entry).text)
		}
	}
	return names
}

// every returns addresses of .text, step bytes apart.
func every(t *testing.T, path string, step uint64) (all []uint64) {
	start, end := section(t, path, ".text")
	for a := start; a < end; a += step {
		all = append(all, a)
	}
	return all
}

func TestAddr2line(t *testing.T) {
	for _, tt := range []struct {
		name     string
		compiler string
		flags    []string
	}{
		{"gcc -O0", "gcc", []string{"-O0", "-g"}},
		{"gcc -O2", "gcc", []string{"-O2", "-g"}},
		{"gcc -O2 no-pie", "gcc", []string{"-O2", "-g", "-no-pie"}},
		{"gcc -O2 2", "gcc", []string{"-O2", "-gdwarf-2", "-gstrict-dwarf"}},
		{"gcc -O2 3", "gcc", []string{"-O2", "-gdwarf-3"}},
		{"gcc -O2 4", "gcc", []string{"-O2", "-gdwarf-4"}},
		{"gcc -O2 5", "gcc", []string{"-O2", "-gdwarf-5"}},
		{"gcc -O2 64-bit offsets", "gcc", []string{"-O2", "-gdwarf-5", "-gdwarf64"}},
		{"gcc -O2 4 types", "gcc", []string{"-O2", "-gdwarf-4", "-fdebug-types-section"}},
		{"gcc -O2 5 types", "gcc", []string{"-O2", "-gdwarf-5", "-fdebug-types-section"}},
		{"gcc -O3 lto", "gcc", []string{"-O3", "-g", "-flto"}},
		{"gcc -O1 packed", "gcc", []string{"-O1", "-g", "-gz"}},
		{"gcc -O1 packed the old way", "gcc", []string{"-O1", "-g", "-gz=zlib-gnu"}},
		{"gcc -O2 sections", "gcc", []string{"-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"}},
		{"gcc -O2 lines only", "gcc", []string{"-O2", "-g1"}},
		{"gcc -O2 gold", "gcc", []string{"-O2", "-g", "-fuse-ld=gold"}},
		{"clang -O0", "clang", []string{"-O0", "-g"}},
		{"clang -O2", "clang", []string{"-O2", "-g"}},
		{"clang -O2 4", "clang", []string{"-O2", "-gdwarf-4"}},
		{"clang -O2 5", "clang", []string{"-O2", "-gdwarf-5"}},
		{"clang -O2 lines only", "clang", []string{"-O2", "-gline-tables-only"}},
		{"gcc -m32 -O0", "gcc", []string{"-m32", "-O0", "-g"}},
		{"gcc -m32 -O2", "gcc", []string{"-m32", "-O2", "-g", "-ffunction-sections"}},
		{"gcc -m32 -O2 4", "gcc", []string{"-m32", "-O2", "-gdwarf-4", "-no-pie"}},
		{"clang -m32 -O2", "clang", []string{"-m32", "-O2", "-g"}},
	} {
		if runtime.GOARCH != "amd64" && slices.Contains(tt.flags, "-m32") {
			continue // a compiler for amd64
		}
		for source, step := range map[string]uint64{"shapes.c": 1, "shapes.cc": 7} {
			t.Run(tt.name+"/"+source, func(t *testing.T) {
				path := compile(t, tt.compiler, source, tt.flags...)
				tab, f := table(t, "", path)
				compare(t, tab, f, path, every(t, path, step))
			})
		}
	}
}
