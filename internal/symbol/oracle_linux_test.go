package symbol

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// run runs a program and returns its output.
func run(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
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
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	compiler := "gcc"
	if strings.HasSuffix(source, ".cc") {
		compiler = "g++"
	}
	out := filepath.Join(t.TempDir(), "prog")
	run(t, "", append([]string{compiler, "-o", out, filepath.Join("testdata", source)}, flags...)...)
	return out
}

// builds are the ways of linking that place code differently.
var builds = []struct {
	name  string
	flags []string
}{
	{"pie", []string{"-O2", "-pie", "-fPIE"}},
	{"no-pie", []string{"-O1", "-no-pie"}},
	{"noseparate", []string{"-O0", "-Wl,-z,noseparate-code"}},
	{"noseparate no-pie", []string{"-O2", "-no-pie", "-Wl,-z,noseparate-code"}},
	{"gold", []string{"-O2", "-fuse-ld=gold"}},
	{"shared", []string{"-O2", "-shared", "-fPIC"}},
	{"static", []string{"-O2", "-static"}},
	{"static-pie", []string{"-O2", "-static-pie", "-fPIE"}},
	{"sections", []string{"-O2", "-ffunction-sections", "-Wl,--gc-sections", "-Wl,--build-id=md5"}},
}

// known is a symbol as readelf prints it.
type known struct {
	addr, size      uint64
	typ, bind, name string
}

// readelf returns the functions and labels of .symtab or .dynsym.
func readelf(t *testing.T, path string) (all []known) {
	t.Helper()
	for line := range strings.Lines(run(t, "", "readelf", "-sW", path)) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.HasSuffix(f[0], ":") || f[6] == "UND" || f[6] == "ABS" {
			continue
		}
		if f[3] != "FUNC" && f[3] != "IFUNC" && f[3] != "NOTYPE" {
			continue
		}
		addr, err := strconv.ParseUint(f[1], 16, 64)
		if err != nil {
			continue // the heading
		}
		size, err := strconv.ParseUint(f[2], 0, 64)
		if err != nil {
			t.Fatal(line)
		}
		name, _, _ := strings.Cut(f[7], "@")
		all = append(all, known{addr, size, f[3], f[4], name})
	}
	return all
}

// TestEveryFunction looks up addresses inside and after each function and compares the
// results with readelf's list.
func TestEveryFunction(t *testing.T) {
	for _, b := range builds {
		for _, source := range []string{"funcs.c", "names.cc"} {
			t.Run(b.name+"/"+source, func(t *testing.T) {
				path := compile(t, source, b.flags...)
				checkEvery(t, path)
			})
		}
	}
	for _, lib := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"} {
		t.Run(filepath.Base(lib), func(t *testing.T) {
			if _, err := os.Stat(lib); err != nil {
				t.Skip("SKIP:", err)
			}
			checkEvery(t, lib)
		})
	}
}

func checkEvery(t *testing.T, path string) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Load(); err != nil {
		t.Fatal(err)
	}
	all := readelf(t, path)
	if debug := f.DebugFile(); debug != "" {
		all = append(all, readelf(t, debug)...)
	}
	functions := 0
	starts := map[uint64]map[string]known{}
	for _, k := range all {
		if starts[k.addr] == nil {
			starts[k.addr] = map[string]known{}
		}
		if old := starts[k.addr][k.name]; old.typ == "" || old.typ == "NOTYPE" {
			starts[k.addr][k.name] = k
		}
	}
	for _, k := range all {
		if k.typ == "NOTYPE" {
			continue
		}
		functions++
		for _, addr := range []uint64{k.addr, k.addr + k.size/2, k.addr + max(k.size, 1) - 1, k.addr + k.size} {
			got, ok := f.Lookup(addr)
			if err := agrees(all, starts, addr, got, ok); err != nil {
				t.Errorf("%#x near %s: %v", addr, k.name, err)
			}
		}
		if sym, ok := f.Defined(k.name); !ok || starts[sym.Addr][k.name].typ == "" {
			t.Errorf("%s is defined at %#x, %v", k.name, sym.Addr, ok)
		}
		if want := k.typ == "IFUNC"; want && !f.IFunc(k.addr) {
			t.Errorf("%s is an IFUNC", k.name)
		}
		found := false
		for _, s := range f.Aliases(k.addr) {
			found = found || s.Name == k.name && s.Size == k.size
		}
		if !found {
			t.Errorf("%s is not among the aliases %v", k.name, f.Aliases(k.addr))
		}
	}
	if functions == 0 {
		t.Error("readelf lists no functions")
	}
}

// agrees reports what is wrong with a result. If a function with a size contains addr, the
// result must be such a function, and the innermost one.
func agrees(all []known, starts map[uint64]map[string]known, addr uint64, got Symbol, ok bool) error {
	covered, inner := false, uint64(0)
	for _, k := range all {
		if k.typ != "NOTYPE" && addr >= k.addr && addr-k.addr < k.size {
			covered, inner = true, max(inner, k.addr)
		}
	}
	if !ok {
		if covered {
			return fmt.Errorf("no name, but a function at %#x holds it", inner)
		}
		return nil
	}
	k := starts[got.Addr][got.Name]
	switch {
	case k.typ == "":
		return fmt.Errorf("no symbol %s at %#x", got.Name, got.Addr)
	case covered && got.Addr != inner:
		return fmt.Errorf("%s at %#x, want the one at %#x", got.Name, got.Addr, inner)
	case covered && k.typ == "NOTYPE":
		return fmt.Errorf("label %s, want the function at %#x", got.Name, inner)
	case k.size > 0 && addr-got.Addr >= k.size:
		return fmt.Errorf("%s ended at %#x", got.Name, got.Addr+k.size)
	}
	return nil
}

// TestAddr2line compares all functions of programs with addr2line, which may choose any of
// the names at an address.
func TestAddr2line(t *testing.T) {
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			path := compile(t, "funcs.c", b.flags...)
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var addrs []uint64
			var in strings.Builder
			for _, k := range readelf(t, path) {
				if k.typ != "NOTYPE" && k.size > 0 {
					addrs = append(addrs, k.addr+k.size/2)
					fmt.Fprintf(&in, "%#x\n", k.addr+k.size/2)
				}
			}
			lines := strings.Split(run(t, in.String(), "addr2line", "-f", "-e", path), "\n")
			for i, addr := range addrs {
				want := lines[2*i]
				want, _, _ = strings.Cut(want, "@")
				got, ok := f.Lookup(addr)
				same := ok && got.Name == want
				for _, s := range f.Aliases(got.Addr) {
					same = same || s.Name == want
				}
				if !same {
					t.Errorf("%#x is %s, %v; addr2line prints %s", addr, got.Name, ok, want)
				}
			}
		})
	}
}

// TestGDB compares the names of a program's functions with gdb's.
func TestGDB(t *testing.T) {
	path := compile(t, "funcs.c", "-O2", "-no-pie")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	args := []string{"gdb", "-nx", "-batch"}
	var want []string
	for _, k := range readelf(t, path) {
		if k.typ == "NOTYPE" || k.size == 0 {
			continue
		}
		args = append(args, "-ex", fmt.Sprintf("info symbol %#x", k.addr+k.size-1))
		got, _ := f.Lookup(k.addr + k.size - 1)
		var names []string
		for _, s := range f.Aliases(got.Addr) {
			names = append(names, s.Name)
		}
		want = append(want, strings.Join(names, " "))
	}
	lines := strings.Split(strings.TrimSpace(run(t, "", append(args, path)...)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("gdb prints %d lines for %d functions: %q", len(lines), len(want), lines)
	}
	for i, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		name = strings.Replace(name, "[cold]", ".cold", 1) // as gdb prints split parts
		if !strings.Contains(" "+want[i]+" ", " "+name+" ") {
			t.Errorf("gdb prints %q, want one of %s", line, want[i])
		}
	}
}

// TestPreferredNames checks which of the names of one function is chosen.
func TestPreferredNames(t *testing.T) {
	f, err := Open(compile(t, "funcs.c", "-O2", "-no-pie"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]string{
		"__plain_impl": "plain", "_plain": "plain", "plain": "plain", "asm_func": "asm_func", "asm_inner": "asm_func",
		"asm_label": "asm_label", "asm_local": "asm_local", "picked": "picked", "choose": "picked",
	} {
		sym, ok := f.Defined(name)
		if !ok {
			t.Errorf("%s is not defined", name)
			continue
		}
		if got, _ := f.Lookup(sym.Addr); got.Name != want {
			t.Errorf("%s is called %s, want %s", name, got.Name, want)
		}
	}
}

func TestVersions(t *testing.T) {
	path := compile(t, "versions.c", "-shared", "-fPIC", "-Wl,--version-script,testdata/versions.map")
	for _, strip := range []bool{false, true} {
		t.Run(fmt.Sprint("stripped ", strip), func(t *testing.T) {
			if strip {
				run(t, "", "strip", path)
			}
			want := map[string]uint64{}
			for line := range strings.Lines(run(t, "", "nm", "-D", "--defined-only", path)) {
				if f := strings.Fields(line); len(f) == 3 {
					want[f[2]], _ = strconv.ParseUint(f[0], 16, 64)
				}
			}
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if sym, ok := f.Defined("cond"); !ok || sym.Addr != want["cond@@V2"] || sym.Addr == want["cond@V1"] {
				t.Errorf("cond is %+v, want %v", sym, want)
			}
			if sym, ok := f.Defined("lone"); !ok || sym.Addr != want["lone@@V1"] {
				t.Errorf("lone is %+v, want %v", sym, want)
			}
		})
	}
}

// TestWithoutSections finds the symbols in the way of the dynamic loader.
func TestWithoutSections(t *testing.T) {
	for _, style := range []string{"sysv", "gnu", "both"} {
		t.Run(style, func(t *testing.T) {
			path := compile(t, "funcs.c", "-shared", "-fPIC", "-Wl,--hash-style="+style)
			run(t, "", "strip", path)
			whole, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer whole.Close()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			clear(data[0x28:0x30]) // e_shoff
			clear(data[0x3c:0x40]) // e_shnum, e_shstrndx
			bare, err := New(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			if bare.BuildID() == "" || bare.BuildID() != whole.BuildID() {
				t.Errorf("build ID %q, want %q", bare.BuildID(), whole.BuildID())
			}
			for _, name := range []string{"weak_one", "plain", "parts", "picked", "asm_func", "main"} {
				want, ok1 := whole.Defined(name)
				got, ok2 := bare.Defined(name)
				if !ok1 || !ok2 || got != want {
					t.Errorf("%s is %+v, %v; with section headers %+v, %v", name, got, ok2, want, ok1)
				}
			}
		})
	}
}

// Test32 reads a program of the other word size.
func Test32(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	if err := os.WriteFile(source, []byte("int f(int x) { return x + 1; }\nvoid _start(void) { f(1); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a")
	run(t, "", "gcc", "-m32", "-nostdlib", "-static", "-Wl,--build-id", "-o", path, source)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Class() != 32 || f.Machine() != elf.EM_386 || f.BuildID() == "" {
		t.Errorf("class %d, machine %v, build ID %q", f.Class(), f.Machine(), f.BuildID())
	}
	checkEvery(t, path)
}
