package sidefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

func TestWriterFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.side")
	names := func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return strings.Join(all, " ")
	}
	open := func() *sidefile.Writer {
		t.Helper()
		w, err := sidefile.NewWriter(path, one)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}

	w := open()
	if _, err := os.Stat(path); err == nil {
		t.Error("the file has its name before it is complete")
	}
	if err := w.Discard(); err != nil || names() != "" {
		t.Errorf("after Discard: %v, %q", err, names())
	}
	if err := w.WriteRecord(richTrace()[0]); err == nil {
		t.Error("written after Discard")
	}

	w = open()
	if err := w.WriteRecord(&trace.Record{Kind: trace.KindEnd}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || names() != "out.side" {
		t.Errorf("after Close: %v, %q", err, names())
	}
	if err := errors.Join(w.Close(), w.Discard()); err != nil || names() != "out.side" {
		t.Errorf("after a second Close: %v, %q", err, names())
	}
	if w = open(); w.Close() != nil {
		t.Error("an earlier side file is not replaced")
	}
	if err := os.WriteFile(path, []byte("a letter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sidefile.NewWriter(path, one); !errors.Is(err, os.ErrExist) {
		t.Errorf("on another file: %v", err)
	}
	if _, err := sidefile.NewWriter(filepath.Join(dir, "no", "such"), one); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a missing folder: %v", err)
	}
	if names() != "out.side" {
		t.Errorf("left: %q", names())
	}
}

// Beyond a bound, the writer's memory does not grow with the trace.
func TestWriterMemory(t *testing.T) {
	w, err := sidefile.NewWriter(filepath.Join(t.TempDir(), "x"), one)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	rec := call(1, 1, trace.OpAlloc, 5, full)
	write := func() {
		rec.TID ^= 3
		rec.Call.Size ^= 1 << 33
		if err := w.WriteRecord(rec); err != nil {
			t.Fatal(err)
		}
	}
	for range 200_000 {
		write()
	}
	if n := testing.AllocsPerRun(50_000, write); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

func BenchmarkWriteCall(b *testing.B) {
	w, err := sidefile.NewWriter(filepath.Join(b.TempDir(), "x"), one)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	alloc, free := call(1, 1, trace.OpAlloc, 5, full), call(1, 1, trace.OpFree, 0, noStack)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := alloc
		if i%2 == 0 {
			r = free
		}
		r.TID = int32(i >> 3 & 1)
		if err := w.WriteRecord(r); err != nil {
			b.Fatal(err)
		}
	}
}
