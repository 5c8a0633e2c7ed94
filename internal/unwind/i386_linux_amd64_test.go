package unwind

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// TestSystemFilesI386 compares the tables of 32-bit libraries with readelf's output, and with
// the restorers that objdump shows in glibc's.
func TestSystemFilesI386(t *testing.T) {
	for _, name := range []string{"libc.so.6", "ld-linux.so.2", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1"} {
		path := filepath.Join("/usr/lib32", name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(path); err != nil {
				t.Fatalf("%v (g++-multilib brings it)", err)
			}
			var more []testutil.Frame
			if name == "libc.so.6" || name == "ld-linux.so.2" {
				more = restorersOf(t, path)
			}
			compare(t, path, more...)
		})
	}
}

// TestProgramsI386 does the same for programs built in several ways.
func TestProgramsI386(t *testing.T) {
	builds := map[string][]string{
		"default":     nil,
		"no fp":       {"-fomit-frame-pointer"},
		"O0":          {"-O0"},
		"Os":          {"-Os", "-fomit-frame-pointer"},
		"no-pie":      {"-no-pie", "-fno-pie"},
		"lazy":        {"-Wl,-z,lazy"},
		"ibt":         {"-fcf-protection", "-Wl,-z,ibtplt,-z,lazy"},
		"realigned":   {"-mstackrealign", "-fomit-frame-pointer"},
		"debug_frame": {"-fno-asynchronous-unwind-tables", "-fno-unwind-tables"},
	}
	for name, flags := range builds {
		t.Run(name, func(t *testing.T) { compare(t, testutil.Build(t, "alloc", append(flags, "-m32")...)) })
	}
	for _, flag := range []string{"-static", "-static-pie"} {
		t.Run(flag, func(t *testing.T) {
			path := testutil.Build(t, "alloc", "-m32", flag)
			compare(t, path, restorersOf(t, path)...)
		})
	}
	t.Run("c++", func(t *testing.T) { compare(t, testutil.Build(t, "cxx", "-m32")) })
}

// restorersOf returns the code of a C library that is returned to without a call and has no
// FDE, in the form of FDEs. glibc has two restorers.
func restorersOf(t *testing.T, path string) (all []testutil.Frame) {
	t.Helper()
	out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	restorer := regexp.MustCompile(`(?m)^ *([0-9a-f]+):\tmov +\$0x(ad|77),%eax\n.*\tint +\$0x80`)
	for _, m := range restorer.FindAllSubmatch(out, -1) {
		at, err := strconv.ParseUint(string(m[1]), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		f := testutil.Frame{Section: ".eh_frame", Start: at - 1, End: at + 7, CIE: "zRS", Rows: []testutil.FrameRow{{Start: at - 1}}}
		if string(m[2]) == "77" { // after a pop
			f.Start--
			f.Rows = []testutil.FrameRow{{Start: at - 2}, {Start: at}}
			f.Expressions = []string{oldSignal}
		}
		all = append(all, f)
	}
	if len(all) != 2 {
		t.Fatalf("objdump shows %d restorers in %s", len(all), path)
	}
	// Functions of makecontext return to an address after its FDE, which ends at the ret
	// before.
	context := regexp.MustCompile(`(?m)^ *([0-9a-f]+):\tlea +\(%esp,%ebx,4\),%esp\n.*\tcmpl +\$0x0,\(%esp\)`)
	m := context.FindSubmatch(out)
	if has := m != nil; has != (filepath.Base(path) == "libc.so.6") {
		t.Fatalf("objdump shows makecontext's end in %s: %v", path, has)
	}
	if m != nil {
		at, err := strconv.ParseUint(string(m[1]), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		end := testutil.FrameRow{Start: at - 1, Registers: map[string]string{"ra": "u"}}
		all = append(all, testutil.Frame{Section: ".eh_frame", Start: at - 1, End: at + 7, Rows: []testutil.FrameRow{end}})
	}
	return all
}

// TestVDSOI386 reads the kernel's vDSO from a 32-bit process.
func TestVDSOI386(t *testing.T) {
	testutil.Need32Bit(t)
	c := testutil.Spawn(t, testutil.Build(t, "alloc", "-m32"), "1", "1")
	c.Ready()
	data, path := vdso(t, strconv.Itoa(c.PID))
	table, err := buildBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	found := map[Kind]bool{}
	for _, r := range table.Rules {
		found[r.Kind()] = true
	}
	want := map[Kind]bool{None: true, SP: true, Signal: true, SignalOld: true, Unsupported: true}
	if !maps.Equal(found, want) {
		t.Errorf("kinds %v, want %v", found, want)
	}
	compare(t, path)
}

// TestRealignedMain covers main as GCC compiles it: it begins with lea 4(%esp), %ecx, and its
// frame is found through a word on the stack.
func TestRealignedMain(t *testing.T) {
	path := testutil.Build(t, "alloc", "-m32", "-O0")
	main, ok := symbolOf(t, path, "main")
	if !ok {
		t.Fatal("no main")
	}
	table := build(t, path)
	var got []string
	for at := main; at < main+64; at++ {
		if rule := table.Find(at).Frame(table.Word).String(); len(got) == 0 || rule != got[len(got)-1] {
			got = append(got, rule)
		}
	}
	text := strings.Join(got, "; ")
	if want := regexp.MustCompile(`^cfa=sp\+4; cfa=r1\+0; cfa=r1\+0 fp=\[fp\+0\]; cfa=\*\(fp-\d+\)\+0 fp=\[fp\+0\]$`); !want.MatchString(text) {
		t.Errorf("rules of main are %s, want %v", text, want)
	}
}
