package main

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
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
	cmd := exec.Command(args[0], args[1:]...)
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

// symbolizer asks for the frames of addresses in the manner of addr2line, and
// returns them as rtrace prints them, by address.
func symbolizer(t *testing.T, path string, addrs []uint64, args ...string) map[uint64]string {
	t.Helper()
	var in strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	lines := strings.Split(strings.TrimSpace(tool(t, in.String(), append(args, "-e", path)...)), "\n")
	all := map[uint64]string{}
	var at uint64
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "0x") {
			if _, err := fmt.Sscanf(lines[i], "0x%x", &at); err != nil {
				t.Fatal(err)
			}
			continue
		}
		place, _, _ := strings.Cut(lines[i+1], " (discriminator")
		name, mangled := symbol.Source(lines[i])
		if !mangled {
			name += "()"
		}
		if all[at] != "" {
			all[at] += frametext.InlinedBy
		}
		all[at] += name + " at " + filepath.Base(place)
		i++
	}
	return all
}

// TestResolveOracles compares the texts of all frames that may come from a call
// with what addr2line, llvm-symbolizer and gdb say, for files linked in different
// ways and mappings described in both.
func TestResolveOracles(t *testing.T) {
	for _, flags := range [][]string{{"-pie", "-fPIE"}, {"-no-pie"}, {"-gdwarf-4", "-gz"}, {"-Wl,-z,noseparate-code"}} {
		c := compileText(t, filepath.Join(t.TempDir(), "prog"), inlineSource, flags...)
		bias := uint64(0x555555554000)
		if slices.Contains(flags, "-no-pie") {
			bias = 0
		}
		var addrs []uint64
		for a := c.text.Addr; a < c.text.Addr+c.text.Size; a++ {
			addrs = append(addrs, a)
		}
		gnu := symbolizer(t, c.path, addrs, "addr2line", "-a", "-f", "-i")
		llvm := symbolizer(t, c.path, addrs, "llvm-symbolizer", "-a", "--no-demangle", "--output-style=GNU")
		start := bias + c.code.Vaddr&^0xfff
		end := bias + toPage(c.code.Vaddr+c.code.Filesz)
		for _, from := range []uint64{start, bias} { // of sp-rtrace, of rtrace-bpf
			if bias == 0 {
				from = start
			}
			var in strings.Builder
			fmt.Fprintf(&in, "version=2.0, pid=7, filter=resolve, \n: %s => %#x-%#x\n1. malloc(1) = 0x5\n", c.path, from, end)
			for _, a := range addrs {
				fmt.Fprintf(&in, "\t%#x\n", bias+a+1)
			}
			out, errOut, code := runRtrace(in.String()+"\n", "resolve")
			frames := resolvedFrame.FindAllStringSubmatch(out, -1)
			if code != cli.OK || errOut != "" || len(frames) != len(addrs) {
				t.Fatalf("%v: exit code %d, %q, %d frames of %d", flags, code, errOut, len(frames), len(addrs))
			}
			both, inlined := 0, 0
			for i, a := range addrs {
				if gnu[a] != llvm[a] || strings.Contains(gnu[a], "?") || strings.Contains(gnu[a], ":0") {
					continue
				}
				both++
				if strings.Contains(gnu[a], frametext.InlinedBy) {
					inlined++
				}
				if frames[i][2] != gnu[a] {
					t.Errorf("%v: %#x is %q, both others say %q", flags, a, frames[i][2], gnu[a])
				}
			}
			t.Logf("%v from %#x: %d addresses, of which both others agree on %d, %d with inlined functions", flags, from, len(addrs), both, inlined)
			if both < 100 || inlined < 20 {
				t.Errorf("%v: too few to compare", flags)
			}
			askGDB(t, c, addrs, frames)
		}
	}
}

// callEnds returns the addresses behind the calls of a program, where frames of
// stacks are.
func callEnds(t *testing.T, path string) (ends []uint64) {
	t.Helper()
	call := regexp.MustCompile(`^ +([0-9a-f]+):.*\tcall `)
	next := regexp.MustCompile(`^ +([0-9a-f]+):`)
	waiting := false
	for line := range strings.Lines(tool(t, "", "objdump", "-d", "--no-show-raw-insn", path)) {
		if m := next.FindStringSubmatch(line); m != nil && waiting {
			var at uint64
			if _, err := fmt.Sscanf(m[1], "%x", &at); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, at)
		}
		waiting = call.MatchString(line)
	}
	return ends
}

// askGDB compares the lines of frames with those of gdb, which says of an
// address what line it belongs to.
func askGDB(t *testing.T, c compiled, addrs []uint64, frames [][]string) {
	t.Helper()
	var script strings.Builder
	ends := callEnds(t, c.path)
	for _, a := range ends {
		fmt.Fprintf(&script, "info line *%#x\n", a-1)
	}
	name := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(name, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(tool(t, "", "gdb", "-nx", "-batch", "-x", name, c.path)), "\n")
	if len(said) != len(ends) {
		t.Fatalf("gdb says %d lines of %d addresses", len(said), len(ends))
	}
	line := regexp.MustCompile(`^Line ([0-9]+) of "([^"]*)" (starts|is) at address`)
	compared := 0
	for i, end := range ends {
		at, found := slices.BinarySearch(addrs, end-1)
		m := line.FindStringSubmatch(said[i])
		if m == nil || !found {
			continue
		}
		inner, _ := frametext.Outer(frames[at][2])
		compared++
		if p := frametext.Parse(inner); fmt.Sprint(p.Line) != m[1] || p.File != filepath.Base(m[2]) {
			t.Errorf("%#x is %q, gdb says %s", end, frames[at][2], said[i])
		}
	}
	t.Logf("%d calls compared with gdb", compared)
	if compared < 6 {
		t.Errorf("gdb knows only %d lines", compared)
	}
}

// sideTrace is a binary trace with its side file, which says what build was
// traced. Its only call has a frame in the function plain of c, mapped as path.
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

// TestResolveElsewhere: with the side file, files are found that are not where
// they were, and files that are not those that were traced give no names.
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
		{"gone", []string{root("empty")}, bare, "functions in " + where + " have no names: no such file or directory"},
		{"another build", []string{root("other")}, bare, "it is another build than was traced (build-id " + other.buildID + ", not " + c.buildID + ")"},
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
	// Without the side file nothing tells that it is another build.
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

// TestResolvePerfMap: code that the process made has the names of perf's map file.
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

// TestResolveOtherMachine: a file of the same path for another machine is not
// the one that was traced.
func TestResolveOtherMachine(t *testing.T) {
	c := compileText(t, filepath.Join(t.TempDir(), "prog"), inlineSource)
	for arch, named := range map[string]bool{"x86_64": true, "aarch64": false, "i686": false, "armv7l": false, "riscv64": true} {
		in := fmt.Sprintf("version=2.0, arch=%s, pid=7, \n: %s => %#x-%#x\n1. f(1) = 0x5\n\t%#x\n\n", arch, c.path,
			c.code.Vaddr, toPage(c.code.Vaddr+c.code.Filesz), c.text.Addr+8)
		out, errOut, code := runRtrace(in, "resolve")
		if code != cli.OK || strings.Contains(out, " at ") != named || strings.Contains(errOut, "for another machine") == named {
			t.Errorf("%s: exit code %d, %q\n%s", arch, code, errOut, out)
		}
	}
}
