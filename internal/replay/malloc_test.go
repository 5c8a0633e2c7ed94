package replay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/replay"
)

func TestFindMalloc(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, path := range []string{
		filepath.Join(second, "libjemalloc.so.2"), filepath.Join(first, "libjemalloc.so.1"),
		filepath.Join(first, "libtcmalloc.so.4"), filepath.Join(first, "own.so"), filepath.Join(first, "a b.so"),
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(first, "libmimalloc.so.2"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(first)
	for _, tt := range []struct{ name, want, err string }{
		{"glibc", "", ""},
		{"jemalloc", filepath.Join(second, "libjemalloc.so.2"), ""},
		{"tcmalloc", filepath.Join(first, "libtcmalloc.so.4"), ""},
		{"mimalloc", "", "mimalloc is not installed: libmimalloc.so.3 was not found (Debian package: libmimalloc2.0)"},
		{"hoard", "", `unknown malloc "hoard": use glibc, jemalloc, tcmalloc, mimalloc, or the path of a library`},
		{"own.so", filepath.Join(first, "own.so"), ""},
		{"./own.so", filepath.Join(first, "own.so"), ""},
		{filepath.Join(first, "own.so"), filepath.Join(first, "own.so"), ""},
		{"./libjemalloc.so.1", filepath.Join(first, "libjemalloc.so.1"), ""},
		{"./none.so", "", "looking for the malloc library: stat ./none.so: no such file or directory"},
		{"./a b.so", "", "cannot be preloaded: its path contains a blank or a colon"},
		{first + "/", "", "is not a regular file"},
	} {
		m, err := replay.FindMallocIn(tt.name, []string{first, second})
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got, want := resolved(m.Path), resolved(tt.want); got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
		if (m.Path == "") != (tt.want == "") || m.Name != filepath.Base(tt.name) {
			t.Errorf("%s: %+v", tt.name, m)
		}
	}
}

// resolved returns a path without links, because a temporary folder may be one.
func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

func TestInstalled(t *testing.T) {
	if all := replay.Installed(); len(all) == 0 || all[0] != (replay.Malloc{Name: "glibc"}) {
		t.Errorf("%+v", all)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		walls          []uint64
		median, spread uint64
	}{
		{nil, 0, 0},
		{[]uint64{7}, 7, 0},
		{[]uint64{9, 1, 4}, 4, 8},
		{[]uint64{9, 1, 4, 6}, 5, 8},
		{[]uint64{500, 1, 4, 6, 7}, 6, 3},
		{[]uint64{9, 8, 7, 6, 5, 4, 3, 2, 900}, 6, 4},
	} {
		var row replay.Row
		for _, w := range tt.walls {
			row.Runs = append(row.Runs, replay.Run{Wall: w})
		}
		if m, s := row.Median(func(r *replay.Run) uint64 { return r.Wall }); m != tt.median || s != tt.spread {
			t.Errorf("%d: median %d, spread %d", tt.walls, m, s)
		}
	}
}

func TestParseRun(t *testing.T) {
	good := "wall_ns 1\ncpu_ns 2\nfaults 3\nfailed 4\nlive 5\nrss_before 60\npeak_before 60\nrss_after 80\npeak 90\nmalloc /lib/a b\n"
	r, err := replay.ParseRun([]byte(good))
	if err != nil || r.Wall != 1 || r.CPU != 2 || r.Faults != 3 || r.Failed != 4 || r.Live != 5 || r.Before != 60 || r.After != 80 || r.Peak != 90 || r.Library != "/lib/a b" {
		t.Errorf("%+v, %v", r, err)
	}
	if n := r.Growth(); n != 30 {
		t.Errorf("growth %d", n)
	}
	for _, tt := range []struct {
		from, to string
		growth   uint64
	}{
		{"peak_before 60", "peak_before 70", 30},
		{"peak_before 60", "peak_before 90", 20}, // the peak was before
		{"peak 90", "peak 50", 20},
	} {
		r, err := replay.ParseRun([]byte(strings.Replace(good, tt.from, tt.to, 1)))
		if err != nil || r.Growth() != tt.growth {
			t.Errorf("%s: growth %d, %v", tt.to, r.Growth(), err)
		}
	}
	for _, bad := range []string{
		"", "malloc /lib/a\n", strings.Replace(good, "malloc /lib/a b\n", "", 1), strings.Replace(good, "wall_ns 1\n", "", 1),
		strings.Replace(good, "wall_ns 1", "wall_ns -1", 1), strings.Replace(good, "wall_ns 1", "walls 1", 1), good + "wall_ns 1\n",
	} {
		if r, err := replay.ParseRun([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}
