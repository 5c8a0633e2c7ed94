package lines

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// difference returns the first difference of two lists of frames.
func difference(want, got [][]Frame) string {
	for i := range want {
		if !slices.Equal(want[i], got[i]) {
			return fmt.Sprintf("address %d of %d: %+v, %+v", i, len(want), want[i], got[i])
		}
	}
	return ""
}

// frameList returns the frames of addresses.
func frameList(tab *Table, addrs []uint64) (all [][]Frame) {
	for _, a := range addrs {
		all = append(all, tab.AppendFrames(nil, a))
	}
	return all
}

// withInlined counts the addresses that have inlined functions.
func withInlined(all [][]Frame) (n int) {
	for _, frames := range all {
		if len(frames) > 1 {
			n++
		}
	}
	return n
}

// packers pack the .dwo files of a program into a .dwp file.
var packers = map[string]func(t *testing.T, path string, dwo []string){
	"": nil,
	"dwp": func(t *testing.T, path string, dwo []string) {
		run(t, "", append([]string{"dwp", "-o", path + ".dwp"}, dwo...)...)
	},
	"llvm-dwp": func(t *testing.T, path string, dwo []string) {
		run(t, "", append([]string{"llvm-dwp", "-o", path + ".dwp"}, dwo...)...)
	},
}

// TestSplit checks that with .dwo files, or with a .dwp file made from them, all frames are
// those of the same program with its debugging information inside. Where addr2line differs,
// llvm-symbolizer must agree.
func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		compiler, version, packer, source string
		step                              uint64
	}{
		{"gcc", "4", "", "shapes.cc", 7},
		{"gcc", "5", "", "shapes.c", 1},
		{"clang", "4", "", "shapes.c", 1},
		{"clang", "5", "", "shapes.cc", 7},
		{"gcc", "4", "dwp", "shapes.c", 1},
		{"clang", "5", "llvm-dwp", "shapes.c", 1},
	} {
		name := fmt.Sprintf("%s %s %s %s", tt.compiler, tt.version, tt.packer, tt.source)
		t.Run(name, func(t *testing.T) {
			flags := []string{"-O2", "-gdwarf-" + tt.version}
			whole := compile(t, tt.compiler, tt.source, flags...)
			path := compileSplit(t, tt.compiler, tt.source, flags...)
			dwo, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.dwo"))
			if len(dwo) == 0 {
				t.Fatal("no .dwo file")
			}
			if pack := packers[tt.packer]; pack != nil {
				pack(t, path, dwo)
				for _, name := range dwo {
					os.Remove(name)
				}
			}
			tab, f := table(t, "", path)
			addrs := every(t, path, tt.step)
			got := frameList(tab, addrs)
			first, _ := table(t, "", whole)
			shift, _ := section(t, whole, ".text")
			var there []uint64
			for _, a := range addrs {
				there = append(there, a-addrs[0]+shift)
			}
			if d := difference(frameList(first, there), got); d != "" {
				t.Errorf("(-whole +split):\n%s", d)
			}
			if withInlined(got) == 0 {
				t.Error("no inlined functions")
			}
			few := []uint64{addrs[len(addrs)/3], addrs[len(addrs)/2]} // more would take seconds
			for addr, want := range symbolizer(t, path, few) {
				if got := clean(tab.AppendFrames(nil, addr)); !same(tab, f, addr, got, want) {
					t.Errorf("%#x is %v, llvm-symbolizer prints %v", addr, places(got), want)
				}
			}
		})
	}
}

// compileSplit compiles and links in two steps, because clang names .dwo files after the
// object file.
func compileSplit(t *testing.T, compiler, source string, flags ...string) string {
	t.Helper()
	if filepath.Ext(source) == ".cc" {
		compiler = map[string]string{"gcc": "g++", "clang": "clang++"}[compiler]
	}
	dir := t.TempDir()
	object, path := filepath.Join(dir, "prog.o"), filepath.Join(dir, "prog")
	run(t, "", append([]string{compiler, "-c", "-gsplit-dwarf", "-o", object, filepath.Join("testdata", source)}, flags...)...)
	run(t, "", compiler, "-o", path, object)
	return path
}

// TestSplitMissing checks that a missing .dwo file, or one of another compilation, leaves
// lines without inlined functions. After a move, the file is found next to the program.
func TestSplitMissing(t *testing.T) {
	path := compileSplit(t, "gcc", "shapes.c", "-O2", "-g")
	dwo := filepath.Join(filepath.Dir(path), "prog.dwo")
	data, err := os.ReadFile(dwo)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(filepath.Dir(compileSplit(t, "gcc", "shapes.c", "-O2", "-g", "-DOTHER=1", "-fno-inline-small-functions")), "prog.dwo"))
	if err != nil {
		t.Fatal(err)
	}
	addrs := every(t, path, 1)
	tab, _ := table(t, "", path)
	want := frameList(tab, addrs)
	lines := 0
	for name, content := range map[string][]byte{"gone": nil, "another": other, "cut": data[:len(data)/2], "empty": {}} {
		os.Remove(dwo)
		if content != nil {
			if err := os.WriteFile(dwo, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tab, _ := table(t, "", path)
		got := frameList(tab, addrs)
		if n := withInlined(got); n > 0 && name != "cut" {
			t.Errorf("%s: %d addresses with inlined functions", name, n)
		}
		for i := range got {
			if len(got[i]) > 0 && got[i][0].Line > 0 {
				lines++
				if got[i][0].Line != want[i][0].Line {
					t.Fatalf("%s: %+v, want %+v", name, got[i], want[i])
				}
			}
		}
	}
	if lines == 0 {
		t.Error("no lines")
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(moved), "prog.dwo"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	os.Remove(dwo)
	tab, _ = table(t, "", moved)
	if d := difference(want, frameList(tab, addrs)); d != "" {
		t.Errorf("moved (-before +after):\n%s", d)
	}
}

// TestPackBroken checks that nothing outside its sections is used, whatever the index of a
// .dwp file contains.
func TestPackBroken(t *testing.T) {
	path := compileSplit(t, "clang", "shapes.c", "-O2", "-gdwarf-5")
	packers["llvm-dwp"](t, path, []string{filepath.Join(filepath.Dir(path), "prog.dwo")})
	f, err := elf.Open(path + ".dwp")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	index, err := f.Section(".debug_cu_index").Data()
	if err != nil {
		t.Fatal(err)
	}
	sections := make([][]byte, splitSections)
	for i := range sections {
		sections[i] = make([]byte, 40)
	}
	for i := range index {
		for _, x := range []byte{0x01, 0x80, 0xff} {
			broken := bytes.Clone(index)
			broken[i] ^= x
			for _, data := range [][]byte{broken, broken[:i]} {
				p := &pack{index: data, sections: sections}
				p.read(&Info{})
				for id := range p.rows {
					p.find(id)
				}
			}
		}
	}
}

// TestAlternate checks that what dwz moved to a common file is found there: all frames are
// those from before.
func TestAlternate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string // of the compiler
		dwz   []string
	}{
		{"4", []string{"-O2", "-gdwarf-4"}, nil},
		{"5", []string{"-O2", "-gdwarf-5"}, nil},
		{"5 supplementary", []string{"-O2", "-gdwarf-5"}, []string{"--dwarf-5"}},
		{"relative", []string{"-O2", "-gdwarf-5"}, []string{"-r"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var paths []string
			for i := range 2 {
				path := filepath.Join(dir, fmt.Sprint("prog", i))
				run(t, "", append([]string{"g++", fmt.Sprintf("-DOTHER=%d", i), "-o", path, "testdata/shapes.cc"}, tt.flags...)...)
				paths = append(paths, path)
			}
			path := paths[0]
			addrs := every(t, path, 7)
			tab, _ := table(t, "", path)
			want := frameList(tab, addrs)
			common := filepath.Join(dir, "common")
			run(t, "", append(slices.Concat([]string{"dwz", "-m", common}, tt.dwz), paths...)...)
			tab, _ = table(t, "", path)
			if tab.info.alternate == nil {
				t.Fatal("no alternate file")
			}
			if d := difference(want, frameList(tab, addrs)); d != "" {
				t.Errorf("(-before +after):\n%s", d)
			}
			if tab.alternate == nil {
				t.Error("nothing was looked up there")
			}
			tab.Forget()
			if d := difference(want, frameList(tab, addrs)); d != "" {
				t.Errorf("again (-before +after):\n%s", d)
			}
			// A file of another build is not used.
			if err := os.Rename(paths[1], common); err != nil {
				t.Fatal(err)
			}
			if tab, _ := table(t, "", path); tab.info.alternate != nil {
				t.Error("another file was taken")
			}
		})
	}
}
