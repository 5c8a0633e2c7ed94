package cpio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// archive returns an archive with one file of each kind, with sizes that need all lengths of
// padding.
func archive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, err := range []error{
		w.Dir("d", 0o755),
		w.File("d/empty", 0o600, 0, strings.NewReader("")),
		w.File("d/one", 0o755, 1, strings.NewReader("1")),
		w.File("d/two", 0o644, 2, strings.NewReader("22")),
		w.File("d/three", 0o644, 3, strings.NewReader("333")),
		w.File("d/four", 0o4755, 4, strings.NewReader("4444")),
		w.Symlink("d/link", "one"),
		w.Device("console", 0o600, 5, 1),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// The cpio program reads the archive independently.
func TestCpioReads(t *testing.T) {
	tool, err := exec.LookPath("cpio")
	if err != nil {
		t.Fatalf("%v (make test installs it)", err)
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command(tool, args...)
		cmd.Dir = dir
		cmd.Stdin = bytes.NewReader(archive(t))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("cpio %v: %v", args, err)
		}
		return string(out)
	}
	listing := run(t.TempDir(), "-tv", "--quiet", "--numeric-uid-gid")
	var got []string
	for line := range strings.Lines(listing) {
		f := strings.Fields(line)
		last := f[len(f)-1]
		if strings.Contains(line, " -> ") {
			last = strings.Join(f[len(f)-3:], " ")
		}
		got = append(got, f[0]+" "+f[1]+" "+f[4]+" "+last)
	}
	want := []string{
		"drwxr-xr-x 2 0 d", "-rw------- 1 0 d/empty", "-rwxr-xr-x 1 1 d/one", "-rw-r--r-- 1 2 d/two", "-rw-r--r-- 1 3 d/three",
		"-rwsr-xr-x 1 4 d/four", "lrwxrwxrwx 1 3 d/link -> one", "crw------- 1 5, console",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("cpio lists\n%s\nwant\n%s", g, w)
	}

	dir := t.TempDir()
	run(dir, "-id", "--quiet", "--no-preserve-owner", "d/*", "d")
	for name, want := range map[string]string{"empty": "", "one": "1", "two": "22", "three": "333", "four": "4444", "link": "1"} {
		if got, err := os.ReadFile(filepath.Join(dir, "d", name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
}

// The kernel accepts a further archive only at a multiple of four bytes.
func TestLengthIsPadded(t *testing.T) {
	if n := len(archive(t)); n%4 != 0 {
		t.Errorf("%d bytes", n)
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]func(w *Writer) error{
		"no name":      func(w *Writer) error { return w.Dir("", 0) },
		"absolute":     func(w *Writer) error { return w.Dir("/d", 0) },
		"zero byte":    func(w *Writer) error { return w.Dir("a\x00b", 0) },
		"too big":      func(w *Writer) error { return w.File("f", 0, 1<<32, strings.NewReader("")) },
		"short":        func(w *Writer) error { return w.File("f", 0, 2, strings.NewReader("1")) },
		"after an end": func(w *Writer) error { return errors.Join(w.Close(), w.Dir("d", 0)) },
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			w := NewWriter(io.Discard)
			if do(w) == nil {
				t.Fatal("no error")
			}
			if w.Dir("other", 0o755) == nil {
				t.Error("the error is not remembered")
			}
		})
	}
}
