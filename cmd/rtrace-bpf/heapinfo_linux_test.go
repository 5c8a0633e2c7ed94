package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// heapFields returns the fields of the state of a heap by their names in lower case.
func heapFields(h *trace.HeapInfo) map[string]uint64 {
	all := map[string]uint64{}
	v := reflect.ValueOf(*h)
	for i := range v.NumField() {
		all[strings.ToLower(v.Type().Field(i).Name)] = v.Field(i).Uint()
	}
	return all
}

// heapInfoOf traces the program heapinfo up to the moment where it stands still, and
// returns what the trace says of its heap, what the program says of it, and the bounds of
// the heap that the kernel tells.
func heapInfoOf(t *testing.T, child *testutil.Child, format string) (state *trace.HeapInfo, said map[string]uint64, r *running) {
	t.Helper()
	r = start(t, child, "--heap-info", "--format", format)
	child.Go()
	child.Ready()
	maps, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	said = map[string]uint64{}
	for _, m := range maps {
		if m.Path == "[heap]" {
			said["bottom"], said["top"] = m.Start, m.End
		}
	}
	r.Signal(unix.SIGINT)
	r.ends(cli.OK)
	child.Go()
	child.Succeed()
	for line := range strings.Lines(string(child.Output())) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if said[name], err = strconv.ParseUint(value, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if said["break"] != said["top"] {
		t.Fatalf("the heap ends at %#x, and its mapping at %#x", said["break"], said["top"])
	}
	delete(said, "break")
	states := 0
	for _, rec := range load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, encoder.Suffix(format)))) {
		if rec.Kind == trace.KindHeapInfo {
			states++
			h := rec.HeapInfo
			state = &h
		}
	}
	if states != 1 {
		t.Fatalf("%d records of the heap, want 1\n%s", states, r.Stderr())
	}
	return state, said, r
}

// equalHeap demands that the trace says of all fields but some what the program says,
// and 0 of those.
func equalHeap(t *testing.T, state *trace.HeapInfo, said map[string]uint64, unknown []string) {
	t.Helper()
	if len(said) != reflect.TypeFor[trace.HeapInfo]().NumField() {
		t.Fatalf("the program has said %v", said)
	}
	got := heapFields(state)
	for name, want := range said {
		if slices.Contains(unknown, name) {
			want = 0
		}
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if said["ordblks"] < 3 || said["smblks"] == 0 || said["hblks"] == 0 {
		t.Errorf("the program has not made blocks of all kinds: %v", said)
	}
}

// needSymbols fails the test if the variables of the C library that a program uses are
// not known; in a virtual machine it skips.
func needSymbols(t *testing.T, child *testutil.Child) {
	t.Helper()
	switch {
	case hasSymbols(t, child):
	case testutil.GuestLacks("libc6-dbg"):
		t.Skip("SKIPPED-GUEST: this virtual machine was made without libc6-dbg")
	default:
		t.Fatal("the C library has no symbols of its variables: install its debugging information (make need-test does)")
	}
}

// hasSymbols says whether the variables of the C library that a program uses are known.
func hasSymbols(t *testing.T, child *testutil.Child) bool {
	t.Helper()
	maps, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Perms&proc.Exec == 0 || !m.File() {
			continue
		}
		f, err := symbol.Open(m.Path)
		if err != nil {
			t.Fatal(err)
		}
		found := f.Objects("main_arena", "mp_")
		f.Close()
		if len(found) == 2 {
			return true
		}
	}
	return false
}

// libraryOf returns the path of the C library that a program uses.
func libraryOf(t *testing.T, child *testutil.Child) string {
	t.Helper()
	maps, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if filepath.Base(m.Path) == "libc.so.6" {
			return m.Path
		}
	}
	t.Fatalf("no C library is mapped by process %d", child.PID)
	return ""
}

// The state of the heap at the end of a trace is what mallinfo2 tells the program.
func TestHeapInfo(t *testing.T) {
	all := [][]string{nil, {"-static"}}
	if testutil.Has32Bit() {
		all = append(all, []string{"-static", "-m32"})
	}
	for _, flags := range all {
		testutil.Build(t, "heapinfo", flags...) // before any is started
	}
	test := func(name, format, threads string, flags ...string) {
		t.Run(name+", "+format, func(t *testing.T) {
			testutil.NeedBPF(t)
			if slices.Contains(flags, "-m32") {
				testutil.Need32Bit(t)
			}
			child := testutil.Spawn(t, testutil.Build(t, "heapinfo", flags...), threads)
			child.Ready()
			needSymbols(t, child)
			state, said, _ := heapInfoOf(t, child, format)
			equalHeap(t, state, said, nil)
		})
	}
	for _, format := range []string{"jsonl", "sprtrace", "nettrace"} {
		test("dynamic", format, "3")
	}
	test("static", "jsonl", "3", "-static")
	if len(all) > 2 {
		test("static, 32 bits", "jsonl", "3", "-static", "-m32")
	}
}

// Without symbols there are the bounds, the arena, and the blocks with mappings that the
// trace has seen; the rest is 0, and named.
func TestHeapInfoWithoutSymbols(t *testing.T) {
	program, folder := testutil.Build(t, "heapinfo"), t.TempDir()
	if out, err := exec.Command(testutil.Installed(t, "objcopy"), "--remove-section=.gnu_debuglink", "--remove-section=.note.gnu.build-id",
		libraryOf(t, waiting(t, "heapinfo", "0")), filepath.Join(folder, "libc.so.6")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(program, "0")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+folder)
	child := testutil.Start(t, cmd)
	child.Ready()
	if hasSymbols(t, child) {
		t.Fatal("the C library has symbols without its build-id")
	}
	state, said, r := heapInfoOf(t, child, "sprtrace")
	unknown := []string{"ordblks", "smblks", "fsmblks", "uordblks", "fordblks", "keepcost"}
	equalHeap(t, state, said, unknown)
	r.says("these are not known: " + strings.Join(unknown, ", "))
	side := contentOf(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.side", child.PID)))
	if !strings.Contains(side, `"unknown":["`+strings.Join(unknown, `","`)+`"]`) {
		t.Errorf("the side file does not name them:\n%s", side)
	}
}

// Each window has a state of its own.
func TestHeapInfoOfWindows(t *testing.T) {
	child := waiting(t, "heapinfo", "0")
	r := start(t, child, "--heap-info", "--format", "jsonl")
	for range 2 { // off and on
		if got := finish(t, command(t, "--toggle", fmt.Sprint(child.PID))); got.code != 0 {
			t.Fatalf("toggle: %s", got.stderr)
		}
	}
	child.Go()
	child.Ready()
	r.Signal(unix.SIGINT)
	r.ends(cli.OK)
	child.Go()
	child.Succeed()
	var arenas []uint64
	for i := range 2 {
		for _, rec := range load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-%d.jsonl", child.PID, i))) {
			if rec.Kind == trace.KindHeapInfo {
				arenas = append(arenas, rec.HeapInfo.Arena)
			}
		}
	}
	if len(arenas) > 2 || len(arenas) == 0 || arenas[len(arenas)-1] == 0 {
		t.Errorf("arenas of the windows: %d", arenas)
	}
}

// What has no place for it is told before anything is attached.
func TestHeapInfoFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--heap-info --format mtrc":           "mtrc has no place for the state of the heap",
		"--heap-info --format swap":           "swap has no place",
		"--heap-info --dotnet --format jsonl": "--heap-info does not go with --dotnet alone",
	} {
		var c config
		if err := c.parse(strings.Fields("-p 1 "+args), settings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	var c config
	if err := c.parse([]string{"-p", "1"}, surroundings(map[string]string{"SP_RTRACE_MALLINFO": "1"})); err != nil || !c.allocators.heapInfo {
		t.Errorf("SP_RTRACE_MALLINFO: %v, %v", c.allocators.heapInfo, err)
	}
}
