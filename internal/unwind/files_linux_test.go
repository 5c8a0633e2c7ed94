package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
)

// run runs a tool of binutils.
func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func same(t *testing.T, what string, got, want *Table) {
	t.Helper()
	if !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Rules, want.Rules) || got.Base != want.Base {
		t.Errorf("%s: %d rows from %#x, want %d from %#x", what, len(got.Rows), got.Base, len(want.Rows), want.Base)
	}
}

// TestNoSectionHeaders reads files that contain only what is mapped.
func TestNoSectionHeaders(t *testing.T) {
	for _, path := range append(installed("/usr/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/libstdc++.so.6"),
		testutil.Build(t, "alloc"), testutil.Build(t, "cxx")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := build(t, path)
		binary.LittleEndian.PutUint64(data[40:], 0) // e_shoff
		clear(data[60:64])                          // e_shnum, e_shstrndx
		got, err := buildBytes(t, data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, path, got, want)
	}
}

// TestDebugFrame has programs whose tables are only in .debug_frame: of the file itself,
// compressed, or of its separate debug file.
func TestDebugFrame(t *testing.T) {
	flags := []string{"-fno-asynchronous-unwind-tables", "-fno-unwind-tables"}
	path := testutil.Build(t, "alloc", flags...)
	want := build(t, path)
	main, ok := symbolOf(t, path, "main")
	if !ok || want.Find(main).Kind() != SP {
		t.Fatalf("rule of main is %v", want.Find(main))
	}
	for _, method := range []string{"zlib", "zstd"} {
		packed := filepath.Join(t.TempDir(), method)
		out, err := exec.Command("objcopy", "--compress-debug-sections="+method, path, packed).CombinedOutput()
		if err != nil {
			t.Logf("no %s: %s", method, out)
			continue
		}
		same(t, method, build(t, packed), want)
	}
	dir := t.TempDir()
	debug, stripped := filepath.Join(dir, "alloc.debug"), filepath.Join(dir, "alloc")
	run(t, "objcopy", "--only-keep-debug", path, debug)
	run(t, "objcopy", "--strip-debug", path, filepath.Join(dir, "alone"))
	run(t, "objcopy", "--strip-debug", "--add-gnu-debuglink="+debug, path, stripped)
	same(t, "debug file", build(t, stripped), want)
	if got := build(t, filepath.Join(dir, "alone")).Find(main); got != RuleNone {
		t.Errorf("without its debug file: rule of main is %v", got)
	}
}

// TestDebugFrameByBuildID has the debug file where distributions put it. The program still has
// its symbols, so only the tables are missing.
func TestDebugFrameByBuildID(t *testing.T) {
	path := testutil.Build(t, "alloc", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-Wl,--build-id")
	want := build(t, path)
	root := t.TempDir()
	run(t, "objcopy", "--strip-debug", path, filepath.Join(root, "alloc"))
	f, err := symbol.OpenIn(root, "/alloc")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id := f.BuildID()
	store := filepath.Join(root, "usr/lib/debug/.build-id", id[:2])
	if err := os.MkdirAll(store, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "--only-keep-debug", path, filepath.Join(store, id[2:]+".debug"))
	got, err := Build(f)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "debug file", got, want)
}

// symbolOf returns the address of a function.
func symbolOf(t *testing.T, path, name string) (uint64, bool) {
	t.Helper()
	f, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, ok := f.Defined(name)
	return s.Addr, ok
}

// TestRemovedSection checks that without any call frame information there is no table.
func TestRemovedSection(t *testing.T) {
	out := filepath.Join(t.TempDir(), "alloc")
	run(t, "objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", testutil.Build(t, "alloc"), out)
	f, err := symbol.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// objcopy leaves the segment that led to the tables.
	if table, err := Build(f); !errors.Is(err, ErrNoFrames) && !syntax(err) {
		t.Errorf("table %+v, error %v", table, err)
	}
}

// TestVDSO reads the kernel's vDSO from this process.
func TestVDSO(t *testing.T) {
	data, path := vdso(t, "self")
	table, err := buildBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if elf.Machine(binary.LittleEndian.Uint16(data[18:])) == elf.EM_X86_64 && table.Functions < 3 {
		t.Errorf("%d functions", table.Functions)
	}
	compare(t, path)
}

// vdso returns the kernel's vDSO from a process, and a file with it.
func vdso(t *testing.T, pid string) (data []byte, path string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(maps, []byte("[vdso]"))
	if i < 0 {
		t.Skip("SKIPPED: this kernel maps no vDSO")
	}
	line := maps[bytes.LastIndexByte(maps[:i], '\n')+1 : i]
	var start, end int64
	if _, err := fmt.Sscanf(string(line), "%x-%x", &start, &end); err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	data = make([]byte, end-start)
	if _, err := mem.ReadAt(data, start); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "vdso")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return data, path
}
