package resolve

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/linecache"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// TestCache checks for each address of a program that the kept answer is the one that would
// be found, and that no debugging information is read for it.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	program, debug := filepath.Join(dir, "truth"), filepath.Join(dir, ".debug", "truth.debug")
	for _, args := range [][]string{
		{"gcc", "-g", "-O2", "-o", program, "testdata/truth.c"},
		{"mkdir", ".debug"},
		{"objcopy", "--only-keep-debug", program, debug},
		{"objcopy", "--strip-debug", "--add-gnu-debuglink=" + debug, program},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		if cmd.Dir = "."; args[0] == "mkdir" {
			cmd.Dir = dir
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{program, debug} {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := linecache.Open(filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := symbol.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code := f.Segments()[0]
	all := func(c *linecache.Cache) (got [][]lines.Frame, read bool) {
		t.Helper()
		r := New(Options{Cache: c, Style: Style{Lines: true}})
		const base = 0x7f0000000000
		r.Observe(&trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{
			Start: base + code.Addr&^0xfff, End: base + (code.Addr+code.FileSize+0xfff)&^0xfff, Offset: code.Offset &^ 0xfff, Base: base, Path: program,
		}})
		for at := code.Addr; at < code.Addr+code.FileSize; at++ {
			got = append(got, r.Process(0).Frames(nil, base+at+1))
		}
		if err := r.Save(); err != nil {
			t.Error(err)
		}
		return got, r.modules.mapped(program).debug.lines != nil
	}
	want, read := all(nil)
	inlined := 0
	for _, frames := range want {
		if len(frames) > 1 {
			inlined++
		}
	}
	if !read || inlined == 0 {
		t.Fatalf("read %v, %d addresses with inlined functions", read, inlined)
	}
	for i, wantRead := range []bool{true, false, false} {
		got, read := all(cache)
		if d := cmp.Diff(want, got); d != "" || read != wantRead {
			t.Errorf("run %d: debugging information was read: %v (-without cache +with):\n%s", i, read, d)
		}
	}
	// Without the debug file there are no lines any more.
	if err := os.Remove(debug); err != nil {
		t.Fatal(err)
	}
	want, _ = all(nil)
	got, _ := all(cache)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("without debug file (-without cache +with):\n%s", d)
	}
}
