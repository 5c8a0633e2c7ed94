package lines

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/symbol"
)

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestDebugFile reads the lines from a separate debug file.
func TestDebugFile(t *testing.T) {
	for _, linked := range []bool{false, true} {
		for _, packing := range []string{"none", "zlib", "zlib-gnu", "zstd"} {
			t.Run(packing, func(t *testing.T) {
				prog := compile(t, "gcc", "shapes.c", "-O2", "-g", "-Wl,--build-id")
				whole, f := table(t, "", prog)
				addrs := every(t, prog, 1)
				debug := prog + ".debug"
				run(t, "", "objcopy", "--only-keep-debug", "--compress-debug-sections="+packing, prog, debug)
				run(t, "", "strip", prog)
				if linked {
					run(t, "", "objcopy", "--remove-section=.note.gnu.build-id", "--add-gnu-debuglink="+debug, prog)
				}
				root := t.TempDir()
				move(t, prog, root+"/bin/prog")
				if bare, err := symbol.OpenIn(root, "/bin/prog"); err != nil {
					t.Fatal(err)
				} else if _, err := Read(bare, MaxSize); !errors.Is(err, ErrNone) {
					t.Errorf("without a debug file: %v, want ErrNone", err)
				}
				if linked {
					move(t, debug, root+"/usr/lib/debug/bin/prog.debug")
				} else {
					id := f.BuildID()
					move(t, debug, root+"/usr/lib/debug/.build-id/"+id[:2]+"/"+id[2:]+".debug")
				}
				split, _ := table(t, root, "/bin/prog")
				for _, addr := range addrs {
					if diff := cmp.Diff(whole.AppendFrames(nil, addr), split.AppendFrames(nil, addr)); diff != "" {
						t.Fatalf("%#x (-whole +split):\n%s", addr, diff)
					}
				}
			})
		}
	}
}

// TestTooLarge checks the limit of what is read.
func TestTooLarge(t *testing.T) {
	f, err := symbol.Open(compile(t, "gcc", "shapes.c", "-O2", "-g"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := Read(f, MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(f, info.Size()); err != nil {
		t.Errorf("a limit of just the size: %v", err)
	}
	if _, err := Read(f, info.Size()-1); err == nil {
		t.Error("more was read than the limit")
	}
}

// TestSplitUnits checks that without its .dwo file, a unit has lines but no inlined
// functions.
func TestSplitUnits(t *testing.T) {
	for _, flags := range [][]string{
		{"gcc", "-gdwarf-5"},
		{"gcc", "-gdwarf-4"},
		{"clang", "-gdwarf-5", "-fno-split-dwarf-inlining"},
		{"clang", "-gdwarf-4", "-fno-split-dwarf-inlining"},
	} {
		t.Run(flags[0]+flags[1], func(t *testing.T) {
			source, err := filepath.Abs("testdata/shapes.c")
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			run(t, "", append(flags, "-O2", "-gsplit-dwarf", "-o", "prog", source)...)
			dwo, _ := filepath.Glob("*.dwo")
			for _, name := range dwo {
				os.Remove(name)
			}
			path, err := filepath.Abs("prog")
			if err != nil {
				t.Fatal(err)
			}
			tab, f := table(t, "", path)
			want := symbolizer(t, path, every(t, path, 1)) // addr2line cannot read gcc's
			known := 0
			for addr, all := range want {
				inner := all[0]
				got := clean(tab.AppendFrames(nil, addr))
				if inner.line == "0" {
					continue
				}
				known++
				s, _ := f.Lookup(addr)
				if len(got) != 1 || got[0].File != inner.file || places(got)[0].line != inner.line || got[0].Function != s.Name {
					t.Fatalf("%#x is %+v, want %+v in %s", addr, got, inner, s.Name)
				}
			}
			if known == 0 {
				t.Error("no address is known")
			}
		})
	}
}

// Test32 compares with addr2line, for a program of the other word size.
func Test32(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	text := "static inline int g(int x) { return x *\n x; }\nint f(int x) { return g(x) +\n 1; }\nvoid _start(void) { f(1); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a")
	run(t, "", "gcc", "-m32", "-O1", "-g", "-nostdlib", "-static", "-o", path, source)
	tab, f := table(t, "", path)
	compare(t, tab, f, path, every(t, path, 1))
}
