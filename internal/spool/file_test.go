package spool

import (
	"errors"
	"io"
	"os"
	"testing"

	"rtrace-bpf/trace"
)

func TestFile(t *testing.T) {
	want := random(30000)
	for name, open := range map[string]func(string) (*os.File, error){"unnamed": openUnnamed, "named": openNamed} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, err := open(dir)
			if errors.Is(err, errors.ErrUnsupported) {
				return // another system
			}
			if err != nil {
				t.Fatal(err)
			}
			s := &File{f: f, dir: dir, encoder: newEncoder(tableBytes)}
			if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others may access it: %v, %v", info.Mode(), err)
			}
			for i, r := range want {
				if err := s.WriteRecord(r); err != nil {
					t.Fatal(err)
				}
				if i == 500 {
					if err := s.Flush(); err != nil || s.Size() == 0 {
						t.Fatalf("%v; %d bytes in the file", err, s.Size())
					}
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 && os.PathSeparator == '/' {
				t.Errorf("in the folder: %v, %v", left, err)
			}
			r, err := s.Reader()
			if err != nil {
				t.Fatal(err)
			}
			got, err := trace.Load(r)
			for i := range got {
				got[i] = only(got[i])
			}
			compare(t, want, got, err)
			if err := r.ReadRecord(new(trace.Record)); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
			if err := s.WriteRecord(want[0]); err == nil {
				t.Error("written while it is read")
			}
			if _, err := s.Reader(); err == nil {
				t.Error("read twice")
			}
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			if err := s.WriteRecord(want[0]); err == nil {
				t.Error("written after Close")
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left in the folder: %v, %v", left, err)
			}
		})
	}
}

func TestNoFolder(t *testing.T) {
	_, err := Create("/no/such/folder")
	if err == nil || err.Error() != "create temporary file in /no/such/folder: no such file or directory" {
		t.Error(err)
	}
}

// Records in memory when a write fails are still read, followed by the
// error.
func TestWriteFails(t *testing.T) {
	s, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := random(20000)
	for i, r := range want {
		if i == 10000 {
			readOnly(t, s)
		}
		if err = s.WriteRecord(r); err != nil {
			want = want[:i+1]
			break
		}
	}
	if err == nil || len(want) < 10000 {
		t.Fatalf("%v at record %d", err, len(want))
	}
	if again := s.WriteRecord(want[0]); again != err {
		t.Errorf("written again: %v", again)
	}
	r, e := s.Reader()
	if e != nil {
		t.Fatal(e)
	}
	got, e := trace.Load(r)
	if e != err {
		t.Errorf("the reader ends with %v, want %v", e, err)
	}
	for i := range got {
		got[i] = only(got[i])
	}
	compare(t, want, got, nil)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Discarded records are missing at the end, and no record is truncated.
func TestYield(t *testing.T) {
	s, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := random(30000)
	for _, r := range want {
		if err := s.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if s.Yield(1) {
		t.Error("Yield discards records before Reader is called")
	}
	r, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	size := s.Size()
	var got []*trace.Record
	for {
		var rec trace.Record
		if err = r.ReadRecord(&rec); err != nil {
			break
		}
		got = append(got, only(rec.Clone()))
		if n := len(got); n == 1000 || n == 1100 {
			if !s.Yield(size / 5) {
				t.Error("Yield discards nothing")
			}
		}
	}
	if err != ErrYielded {
		t.Error(err)
	}
	if n := len(got); n < 2000 || n > len(want)*2/3 {
		t.Errorf("%d records of %d are left", n, len(want))
	}
	compare(t, want[:len(got)], got, nil)
	if info, err := s.f.Stat(); err != nil || info.Size() > size-2*(size/5) {
		t.Errorf("the file has %d bytes of %d, %v", info.Size(), size, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s.Yield(1) {
		t.Error("Yield discards records after the end")
	}
}

// readOnly makes the next writes fail.
func readOnly(t *testing.T, s *File) {
	t.Helper()
	path := t.TempDir() + "/copy"
	data := make([]byte, s.size)
	if _, err := s.f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.f.Close(); err != nil {
		t.Fatal(err)
	}
	s.f = f
	if !named(f) {
		t.Error("the file has no name")
	}
}
