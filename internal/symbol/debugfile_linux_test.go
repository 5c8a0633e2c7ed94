package symbol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// split compiles funcs.c and moves its symbols into a debug file. It returns both paths.
func split(t *testing.T, flags ...string) (prog, debug string) {
	t.Helper()
	prog = compile(t, "funcs.c", append(flags, "-O2", "-g")...)
	debug = prog + ".debug"
	run(t, "", "objcopy", "--only-keep-debug", prog, debug)
	run(t, "", "strip", prog)
	return prog, debug
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// named reports whether the file knows its local function.
func named(t *testing.T, f *File) bool {
	t.Helper()
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	sym, ok := f.Defined("quiet")
	if ok {
		if got, _ := f.Lookup(sym.Addr + sym.Size - 1); got.Name != "quiet" {
			t.Errorf("the end of quiet is in %q", got.Name)
		}
	}
	return ok
}

func TestDebugFileByBuildID(t *testing.T) {
	for _, rooted := range []bool{false, true} {
		prog, debug := split(t, "-Wl,--build-id")
		plain, err := Open(prog)
		if err != nil {
			t.Fatal(err)
		}
		if named(t, plain) {
			t.Fatal("named without a debug file")
		}
		id := plain.BuildID()
		plain.Close()
		if len(id) != 40 || !strings.Contains(run(t, "", "readelf", "-n", prog), id) {
			t.Fatalf("build ID %q", id)
		}
		root := t.TempDir()
		name := prog
		if rooted {
			name = "/bin/prog"
			move(t, prog, root+name)
		}
		store := root + "/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug"
		move(t, debug, store)
		f := &File{}
		if rooted {
			f, err = OpenIn(root, name)
		} else {
			f, err = OpenIn("", name)
			f.places = new(Places) // do not look in this machine's folder as well
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := named(t, f); got != rooted {
			t.Errorf("below a root %v: named %v", rooted, got)
		}
		if rooted && f.DebugFile() != store {
			t.Errorf("debug file %q, want %q", f.DebugFile(), store)
		}
		if rooted {
			checkStripped(t, f, store)
		}
	}
}

// checkStripped compares the names of a stripped file with the symbols of its
// debug file.
func checkStripped(t *testing.T, f *File, debug string) {
	t.Helper()
	for _, k := range readelf(t, debug) {
		if k.typ == "NOTYPE" || k.size == 0 {
			continue
		}
		got, ok := f.Lookup(k.addr + k.size - 1)
		found := false
		for _, s := range f.Aliases(k.addr) {
			found = found || s.Name == k.name
		}
		if !ok || got.Addr != k.addr || !found {
			t.Errorf("%s is %+v, %v", k.name, got, ok)
		}
	}
}

func TestDebugFileOfAnotherBuild(t *testing.T) {
	prog, _ := split(t, "-Wl,--build-id")
	_, other := split(t, "-Wl,--build-id", "-O1")
	f, err := Open(prog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.places = &Places{Root: t.TempDir()}
	move(t, other, f.places.Root+"/usr/lib/debug/.build-id/"+f.BuildID()[:2]+"/"+f.BuildID()[2:]+".debug")
	if named(t, f) {
		t.Error("the debug file of another build was used")
	}
}

func TestDebugFileByLink(t *testing.T) {
	for _, place := range []string{"/opt/x/prog.debug", "/opt/x/.debug/prog.debug", "/usr/lib/debug/opt/x/prog.debug"} {
		for _, damaged := range []bool{false, true} {
			prog, debug := split(t, "-Wl,--build-id=none")
			run(t, "", "objcopy", "--add-gnu-debuglink="+debug, prog)
			root := t.TempDir()
			move(t, prog, root+"/opt/x/prog")
			if damaged {
				data, err := os.ReadFile(debug)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(debug, append(data, 0), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			move(t, debug, root+place)
			f, err := OpenIn(root, "/opt/x/prog")
			if err != nil {
				t.Fatal(err)
			}
			if f.BuildID() != "" {
				t.Errorf("build ID %q", f.BuildID())
			}
			if got := named(t, f); got == damaged {
				t.Errorf("%s, damaged %v: named %v", place, damaged, got)
			}
			f.Close()
		}
	}
}

// A file with a symbol table of its own and no link needs no debug file.
func TestDebugFileNotNeeded(t *testing.T) {
	prog := compile(t, "funcs.c", "-Wl,--build-id")
	root := t.TempDir()
	f, err := Open(prog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.places = &Places{Root: root}
	name := root + "/usr/lib/debug/.build-id/" + f.BuildID()[:2] + "/" + f.BuildID()[2:] + ".debug"
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(prog, name); err != nil {
		t.Fatal(err)
	}
	if !named(t, f) || f.DebugFile() != "" {
		t.Errorf("debug file %q", f.DebugFile())
	}
}

func TestOpenOnlyFiles(t *testing.T) {
	for _, path := range []string{"/dev/zero", "/", t.TempDir()} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}
