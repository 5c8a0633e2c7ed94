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

// heapFields returns the fields of the state of a heap by name, in lower case.
func heapFields(h *trace.HeapInfo) map[string]uint64 {
	all := map[string]uint64{}
	v := reflect.ValueOf(*h)
	for i := range v.NumField() {
		all[strings.ToLower(v.Type().Field(i).Name)] = v.Field(i).Uint()
	}
	return all
}

// heapInfoOf traces the program heapinfo until it waits. It returns the state of the heap
// in the trace, and the state that the program prints together with the bounds of the heap
// from /proc/PID/maps.
func heapInfoOf(t *testing.T, child *testutil.Child, format string) (state *trace.HeapInfo, printed map[string]uint64, r *running) {
	t.Helper()
	r = start(t, child, "--heap-info", "--format", format)
	child.Go()
	child.Ready()
	maps, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	printed = map[string]uint64{}
	for _, m := range maps {
		if m.Path == "[heap]" {
			printed["bottom"], printed["top"] = m.Start, m.End
		}
	}
	r.Signal(unix.SIGINT)
	r.ends(cli.OK)
	child.Go()
	child.Succeed()
	for line := range strings.Lines(string(child.Output())) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if printed[name], err = strconv.ParseUint(value, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if printed["break"] != printed["top"] {
		t.Fatalf("the heap ends at %#x, and its mapping at %#x", printed["break"], printed["top"])
	}
	delete(printed, "break")
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
	return state, printed, r
}

// equalHeap fails the test unless the fields of state equal those in printed, or 0 for the
// fields in unknown.
func equalHeap(t *testing.T, state *trace.HeapInfo, printed map[string]uint64, unknown []string) {
	t.Helper()
	if len(printed) != reflect.TypeFor[trace.HeapInfo]().NumField() {
		t.Fatalf("the program has printed %v", printed)
	}
	got := heapFields(state)
	for name, want := range printed {
		if slices.Contains(unknown, name) {
			want = 0
		}
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
	if printed["ordblks"] < 3 || printed["smblks"] == 0 || printed["hblks"] == 0 {
		t.Errorf("the program has not made blocks of all kinds: %v", printed)
	}
}

// needSymbols requires that the variables of a program's C library are known. If they are
// not, it skips the test in a virtual machine and fails it elsewhere.
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

// hasSymbols reports whether the variables of a program's C library are known.
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

// libraryOf returns the path of a program's C library.
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

// TestHeapInfo checks that the state of the heap at the end of a trace is what mallinfo2
// returns in the program.
func TestHeapInfo(t *testing.T) {
	all := [][]string{nil, {"-static"}}
	if testutil.Has32Bit() {
		all = append(all, []string{"-static", "-m32"})
	}
	for _, flags := range all {
		testutil.Build(t, "heapinfo", flags...) // before the first program starts
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
			state, printed, _ := heapInfoOf(t, child, format)
			equalHeap(t, state, printed, nil)
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

// TestHeapInfoWithoutSymbols checks that without symbols the state has the bounds, the
// arena, and the blocks with their own mappings that the trace contains; the other fields
// are 0 and reported as unknown.
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
	state, printed, r := heapInfoOf(t, child, "sprtrace")
	unknown := []string{"ordblks", "smblks", "fsmblks", "uordblks", "fordblks", "keepcost"}
	equalHeap(t, state, printed, unknown)
	r.says("these are not known: " + strings.Join(unknown, ", "))
	side := contentOf(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.side", child.PID)))
	if !strings.Contains(side, `"unknown":["`+strings.Join(unknown, `","`)+`"]`) {
		t.Errorf("the side file does not name them:\n%s", side)
	}
}

// Each window has its own state of the heap.
func TestHeapInfoOfWindows(t *testing.T) {
	child := waiting(t, "heapinfo", "0")
	r := start(t, child, "--heap-info", "--format", "jsonl")
	for range 2 { // off, then on
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

// --heap-info is refused with formats that have no place for the state.
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
