package main

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// inlineSource has inlined functions in C++, over two levels.
const inlineSource = `#include <stdio.h>
#include <stdlib.h>
namespace app {
struct Box {
	void *p;
	__attribute__((always_inline)) Box(unsigned n) : p(malloc(n)) { puts("box"); }
};
template<class T> static inline __attribute__((always_inline)) void *make(T n) {
	Box b(n);
	puts("made");
	return b.p;
}
__attribute__((noinline)) void *work(int n) { return make<long>(n + 1); }
}
extern "C" __attribute__((noinline)) void *plain(int n) {
	void *p = app::make<int>(n);
	printf("%p\n", p);
	return p;
}
int main() { return app::work(3) == plain(4); }
`

// tool runs a program that examines others.
func tool(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testutil.Installed(t, args[0]), args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// compiled is a program with the code segment of its file.
type compiled struct {
	path, buildID string
	code          elf.ProgHeader
	text          *elf.Section
}

// compileText compiles a C++ program into a folder.
func compileText(t *testing.T, path, source string, flags ...string) compiled {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	tool(t, source, slices.Concat([]string{"g++", "-g", "-O2", "-Wl,--build-id", "-x", "c++", "-o", path, "-"}, flags)...)
	return examine(t, path)
}

func examine(t *testing.T, path string) (c compiled) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.path, c.text = path, f.Section(".text")
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			c.code = p.ProgHeader
		}
	}
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	c.buildID = hex.EncodeToString(note[16:])
	return c
}

// toPage rounds up to a page.
func toPage(n uint64) uint64 { return (n + 0xfff) &^ 0xfff }

// sideTrace is a binary trace with its side file, which has the build ID. Its only call has
// a frame in the function plain of c, mapped as path.
func sideTrace(t *testing.T, c compiled, path string) (name string) {
	t.Helper()
	dir := t.TempDir()
	f, err := elf.Open(c.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	const bias = 0x555555554000
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "plain" })
	at := bias + symbols[i].Value + symbols[i].Size
	lines := filepath.Join(dir, "trace.jsonl")
	text := fmt.Sprintf(`{"format":"rtrace-jsonl","version":1}
{"kind":"header","arch":"x86_64","pointer_size":8,"clock":"monotonic"}
{"kind":"process","pid":7,"name":"prog","depth":10}
{"kind":"resource","resource":1,"type":"memory","desc":"memory"}
{"kind":"module","path":%q,"build_id":%q}
{"kind":"mapping","pid":7,"start":"%#x","end":"%#x","offset":"%#x","base":"%#x","path":%q}
{"kind":"call","time":1000000000,"pid":7,"tid":8,"seq":1,"op":"alloc","function":"malloc","resource":1,"id":"0x10","size":8,"stack_end":"complete","stack":["%#x"]}
`, path, c.buildID, bias+c.code.Vaddr, bias+toPage(c.code.Vaddr+c.code.Filesz), c.code.Off, bias, path, at)
	if err := os.WriteFile(lines, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(dir, "trace")
	if _, errOut, code := runRtrace("", "convert", "-o", name, lines); code != cli.OK || errOut != "" {
		t.Fatalf("exit code %d, %q\n%s", code, errOut, text)
	}
	if _, err := os.Stat(name + ".side"); err != nil {
		t.Fatal(err)
	}
	return name
}

// theFrame resolves a trace with one frame.
func theFrame(t *testing.T, args ...string) (text, errOut string) {
	t.Helper()
	out, errOut, code := runRtrace("", append([]string{"resolve"}, args...)...)
	frames := resolvedFrame.FindAllStringSubmatch(out, -1)
	if code != cli.OK || len(frames) != 1 {
		t.Fatalf("%q: exit code %d, %q\n%s", args, code, errOut, out)
	}
	return frames[0][2], errOut
}

// TestResolveElsewhere: with the side file, files that were moved are found, and files other
// than the traced ones give no names.
func TestResolveElsewhere(t *testing.T) {
	const where = "/opt/app/prog"
	dir := t.TempDir()
	c := compileText(t, filepath.Join(dir, "traced", where), inlineSource)
	other := compileText(t, filepath.Join(dir, "other", where), strings.ReplaceAll(inlineSource, "plain", "wrong"))
	name := sideTrace(t, c, where)
	const named, bare = "plain() at <stdin>:19", "from " + where
	empty := filepath.Join(dir, "empty")
	store := func(folder, suffix string) string {
		path := filepath.Join(dir, folder, ".build-id", c.buildID[:2], c.buildID[2:]+suffix)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	stripped := filepath.Join(dir, "stripped", where)
	for _, d := range []string{empty, filepath.Dir(stripped)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, "", "cp", c.path, store("files", ""))
	tool(t, "", "objcopy", "--only-keep-debug", c.path, store("debug", ".debug"))
	tool(t, "", "objcopy", "--strip-all", c.path, stripped)
	root := func(folder string) string { return "--root=" + filepath.Join(dir, folder) }
	folder := func(folder string) string { return "--debug-dir=" + filepath.Join(dir, folder) }
	for _, tt := range []struct {
		name string
		args []string
		want string
		err  string
	}{
		{"as it was", []string{root("traced")}, named, ""},
		{"symbols alone", []string{root("traced"), "-telf"}, "plain() " + bare, ""},
		{"gone", []string{root("empty")}, bare, "no function names for " + where + ": no such file or directory"},
		{"another build", []string{root("other")}, bare, "it is a different build from the traced file (build ID " + other.buildID + ", not " + c.buildID + ")"},
		{"another build, quietly", []string{root("other"), "-q"}, bare, ""},
		{"the file by build-id", []string{root("empty"), folder("files")}, named, ""},
		{"in place of another build", []string{root("other"), folder("files")}, named, ""},
		{"the debug file alone", []string{root("empty"), folder("debug")}, named, ""},
		{"the debug file of a stripped file", []string{root("stripped"), folder("debug")}, named, ""},
		{"a stripped file", []string{root("stripped")}, bare, ""},
		{"several folders", []string{root("empty"), folder("empty"), folder("debug")}, named, ""},
	} {
		got, errOut := theFrame(t, append(tt.args, name)...)
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if !strings.Contains(errOut, tt.err) || tt.err == "" && errOut != "" || strings.Count(errOut, "\n") > 1 {
			t.Errorf("%s: said %q, want %q", tt.name, errOut, tt.err)
		}
	}
	// Without the side file nothing shows that it is another build.
	if got, _ := theFrame(t, root("traced"), "--no-side", name); !strings.HasPrefix(got, named) {
		t.Errorf("without the side file: %q", got)
	}
	// jsonl has the same texts.
	out, _, code := runRtrace("", "resolve", "-f", "jsonl", root("traced"), name)
	if code != cli.OK || !strings.Contains(out, `"names":["`+strings.ReplaceAll(named, "<stdin>", `<stdin>`)) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	checkServer(t, c, name, named, stripped, dir)
}

// checkServer gets the files from a debuginfod server.
func checkServer(t *testing.T, c compiled, name, named, stripped, dir string) {
	t.Helper()
	files := map[string]string{
		"/buildid/" + c.buildID + "/executable": stripped,
		"/buildid/" + c.buildID + "/debuginfo":  filepath.Join(dir, "debug", ".build-id", c.buildID[:2], c.buildID[2:]+".debug"),
	}
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if path, ok := files[r.URL.Path]; ok {
			http.ServeFile(w, r, path)
			return
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("DEBUGINFOD_URLS", s.URL)
	empty := "--root=" + filepath.Join(dir, "empty")
	if got, _ := theFrame(t, empty, name); strings.HasPrefix(got, named) || asked > 0 {
		t.Errorf("without --debuginfod: %q, asked %d times", got, asked)
	}
	for _, flag := range []string{"--debuginfod", "--debuginfod=" + s.URL} { // the second time from the folder
		got, errOut := theFrame(t, empty, flag, name)
		if !strings.HasPrefix(got, named) || errOut != "" || asked != 2 {
			t.Errorf("%s: %q, %q, asked %d times", flag, got, errOut, asked)
		}
	}
	s.Close()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache2"))
	got, errOut := theFrame(t, empty, "--debuginfod", name)
	if strings.HasPrefix(got, named) || !strings.Contains(errOut, "asking "+s.URL) || strings.Count(errOut, "\n") > 2 {
		t.Errorf("without a server: %q, %q", got, errOut)
	}
}

// TestResolvePerfMap: generated code gets its names from perf's map file.
func TestResolvePerfMap(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	const maps = "1000 100 first\n1080 10 later one\x1b[31m\n2000 80 in a mapping\n"
	if err := os.WriteFile(filepath.Join(root, "tmp", "perf-7.map"), []byte(maps), 0o600); err != nil {
		t.Fatal(err)
	}
	const in = "version=2.0, pid=7, \n: //anon => 0x2000-0x3000\n1. malloc(1) = 0x5\n\t0x1001\n\t0x1085\n\t0x1100\n\t0x1101\n\t0x2080\n\t0x2081\n\n"
	file := root + "/tmp/perf-7.map"
	want := fmt.Sprintf("\t0x1001 first from %[1]s\n\t0x1085 later one?[31m from %[1]s\n\t0x1100 first from %[1]s\n\t0x1101 in ??\n"+
		"\t0x2080 in a mapping from %[1]s\n\t0x2081 from //anon\n", file)
	for _, args := range [][]string{{"--root", root}, {"--perf-map", file}} {
		out, errOut, code := runRtrace(in, append([]string{"resolve"}, args...)...)
		if code != cli.OK || errOut != "" || !strings.Contains(out, want) {
			t.Errorf("%v: exit code %d, %q\n%s\nwant\n%s", args, code, errOut, out, want)
		}
	}
	if out, _, _ := runRtrace(in, "resolve", "--root", root, "--perf-map=none"); strings.Contains(out, "first") {
		t.Errorf("a map was used: %s", out)
	}
}

// TestResolvePerfMapOfOthers: a map of another user gives no names unless the user asks for
// it.
func TestResolvePerfMapOfOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, to give files away")
	}
	root := t.TempDir()
	file := filepath.Join(root, "tmp", "perf-2147483647.map") // of a process that cannot exist
	const stranger = 54321
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("1000 100 named\n"), 0o600), os.Chown(file, stranger, stranger)); err != nil {
		t.Fatal(err)
	}
	const in = "version=2.0, pid=2147483647, \n1. malloc(1) = 0x5\n\t0x1001\n\n2. malloc(1) = 0x6\n\t0x1002\n\n"
	for name, tt := range map[string]struct {
		args []string
		sudo string
		used bool
	}{
		"found":                     {[]string{"--root", root}, "", false},
		"found, of the sudo's user": {[]string{"--root", root}, "54321", true},
		"named":                     {[]string{"--perf-map", file}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", tt.sudo)
			t.Setenv("SUDO_GID", tt.sudo)
			out, errOut, code := runRtrace(in, append([]string{"resolve"}, tt.args...)...)
			if code != cli.OK || strings.Contains(out, "named") != tt.used || strings.Count(errOut, "another user") != map[bool]int{false: 1, true: 0}[tt.used] {
				t.Errorf("exit code %d, %q\n%s", code, errOut, out)
			}
		})
	}
}

// TestResolveOtherMachine: a file of the same path for another machine is not the one that
// was traced.
func TestResolveOtherMachine(t *testing.T) {
	c := compileText(t, filepath.Join(t.TempDir(), "prog"), inlineSource)
	for arch, named := range map[string]bool{"x86_64": true, "aarch64": false, "i686": false, "armv7l": false, "riscv64": true} {
		in := fmt.Sprintf("version=2.0, arch=%s, pid=7, \n: %s => %#x-%#x\n1. f(1) = 0x5\n\t%#x\n\n", arch, c.path,
			c.code.Vaddr, toPage(c.code.Vaddr+c.code.Filesz), c.text.Addr+8)
		out, errOut, code := runRtrace(in, "resolve")
		if code != cli.OK || strings.Contains(out, " at ") != named || strings.Contains(errOut, "for a different machine") == named {
			t.Errorf("%s: exit code %d, %q\n%s", arch, code, errOut, out)
		}
	}
}

// A text with its side file keeps every byte except the texts of its frames and the filter
// of its header, also if its calls are grouped by stack and its leaks are summed up.
func TestResolveTextBesideItsSideFile(t *testing.T) {
	dir := t.TempDir()
	c := compileText(t, filepath.Join(dir, "program"), inlineSource)
	raw := sideTrace(t, c, c.path)
	for _, args := range [][]string{{"convert", "-f", "text"}, {"postproc"}, {"postproc", "-l", "-c"}} {
		text := filepath.Join(dir, strings.Join(args, "")+".txt")
		if _, errOut, code := runRtrace("", append(args, "-o", text, raw)...); code != cli.OK {
			t.Fatalf("%q: exit code %d, %s", args, code, errOut)
		}
		side, err := os.ReadFile(raw + ".side")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(text+".side", side, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		after, errOut, code := runRtrace("", "resolve", text)
		if code != cli.OK {
			t.Errorf("%q: exit code %d, %s", args, code, errOut)
		}
		named := 0
		was, is := strings.Split(string(before), "\n"), strings.Split(after, "\n")
		if len(was) != len(is) {
			t.Fatalf("%q: %d lines became %d:\n%s", args, len(was), len(is), after)
		}
		for i := range was {
			switch {
			case i == 0, was[i] == is[i]:
			case strings.HasPrefix(was[i], "\t0x") && strings.HasPrefix(is[i], was[i]+" "):
				named++
			default:
				t.Errorf("%q: line %d, %q, became %q", args, i+1, was[i], is[i])
			}
		}
		if named == 0 {
			t.Errorf("%q: no frame has a name:\n%s", args, after)
		}
	}
}
