package symbol

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPerfMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf-7.map")
	text := "1000 100 first one\n1040 10 inner\n0x2000 0x20 hex\n1080 1000 over\x1b\nno line\n3000 0 empty\n4000 10\n5000 10 \nffffffffffffffff 10 wraps\n" +
		"6000 10 " + strings.Repeat("x", maxPerfLine) + "\n7000 10 last"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := OpenPerfMap(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint64]string{
		0xfff: "", 0x1000: "first one", 0x103f: "first one", 0x1040: "inner", 0x104f: "inner", 0x1050: "first one",
		0x1080: "over?", 0x10ff: "over?", 0x2000: "over?", 0x207f: "over?", 0x2080: "",
		0x3000: "", 0x4000: "", 0x5000: "", 0x6000: "", 0x7000: "last", 0x7010: "", ^uint64(0): "",
	} {
		if got, ok := m.Lookup(addr); got != want || ok != (want != "") {
			t.Errorf("%#x is %q, want %q", addr, got, want)
		}
	}
	for addr, want := range map[uint64][2]uint64{
		0x1000: {0x1000, 0x1040}, 0x104f: {0x1040, 0x1050}, 0x1050: {0x1050, 0x1080}, 0x2070: {0x1080, 0x2080}, 0x2080: {}, 0x7000: {0x7000, 0x7010},
	} {
		if name, start, end, ok := m.Code(addr); start != want[0] || end != want[1] || ok != (name != "") || ok != (end != 0) {
			t.Errorf("%#x is %q, %#x to %#x, want %#x", addr, name, start, end, want)
		}
	}
	for _, path := range []string{path + "x", "/dev/zero", t.TempDir()} {
		m, err := OpenPerfMap(path, nil)
		if name, ok := m.Lookup(0x1000); ok || m != nil || err != nil {
			t.Errorf("%s: %q, %v", path, name, err)
		}
	}
}

// A map that belongs to another user, or is a link, is not used. The size of others is
// limited.
func TestPerfMapOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf-7.map")
	link := path + ".link"
	if err := errors.Join(os.WriteFile(path, []byte("1000 100 name\n"), 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path    string
		trusted func(fs.FileInfo) bool
		used    bool
		err     string
	}{
		"own":             {path, func(fs.FileInfo) bool { return true }, true, ""},
		"other's":         {path, func(fs.FileInfo) bool { return false }, false, "another user"},
		"a link":          {link, func(fs.FileInfo) bool { return true }, false, ""},
		"a link by name":  {link, nil, true, ""},
		"other's by name": {path, nil, true, ""},
	} {
		m, err := OpenPerfMap(tt.path, tt.trusted)
		if _, ok := m.Lookup(0x1000); ok != tt.used || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: used: %v, %v", name, ok, err)
		}
	}
}

func TestPerfMapTooLarge(t *testing.T) {
	const line = "1000 100 name\n"
	for name, tt := range map[string]struct {
		r     io.Reader
		whole bool
	}{
		"many functions": {strings.NewReader(strings.Repeat(line, maxPerfEntries)), true},
		"too many":       {strings.NewReader(strings.Repeat(line, maxPerfEntries+1)), false},
		"no end":         {endless{}, false},
	} {
		m, err := ReadPerfMap(tt.r, "")
		if (err == nil) != tt.whole || len(m.entries) > maxPerfEntries {
			t.Errorf("%s: %v, %d functions", name, err, len(m.entries))
		}
	}
}

// endless is a text without a line break.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// TestPerfMapOverlaps checks with random maps that the last line counts.
func TestPerfMapOverlaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var text strings.Builder
		want := make([]string, 100)
		for i := range r.IntN(20) {
			start, size := r.IntN(80), 1+r.IntN(20)
			name := fmt.Sprint("f", i)
			fmt.Fprintf(&text, "%x %x %s\n", start, size, name)
			for a := start; a < start+size; a++ {
				want[a] = name
			}
		}
		m, _ := ReadPerfMap(strings.NewReader(text.String()), "")
		for a, w := range want {
			if got, _ := m.Lookup(uint64(a)); got != w {
				t.Fatalf("%#x is %q, want %q in\n%s", a, got, w, text.String())
			}
		}
	}
}

func FuzzPerfMap(f *testing.F) {
	f.Add("1000 100 first\n1040 10 inner\n")
	f.Fuzz(func(_ *testing.T, text string) {
		m, _ := ReadPerfMap(strings.NewReader(text), "")
		for _, s := range m.starts {
			m.Lookup(s)
		}
	})
}
