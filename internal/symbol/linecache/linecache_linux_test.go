package linecache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// old is when the files of these tests were last changed.
var old = time.Now().Add(-time.Hour)

// program returns a copy of the test's own executable, an ELF file, with an old timestamp.
func program(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	put(t, path, data)
	return path
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

func openCache(t testing.TB) *Cache {
	t.Helper()
	c, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	c.Producer = "test 1"
	return c
}

func load(t testing.TB, c *Cache, path, scope string) *Entry {
	t.Helper()
	f, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return c.Load(f, scope)
}

var frames = []lines.Frame{
	{Function: "get", Namespace: "std", File: "/src/box.h", Line: 6, Inlined: true},
	{Function: "_Z4loadv", File: "/src/load.cc", Line: 18},
}

// filled saves answers for two addresses.
func filled(t testing.TB, c *Cache, path string, files ...symbol.Consulted) *Entry {
	t.Helper()
	e := load(t, c, path, "")
	e.Add(0x1234, frames)
	e.Add(0xffffffffffffff00, frames[1:])
	e.Add(0x2000, nil)
	e.Consult(files)
	if err := e.Save(); err != nil {
		t.Fatal(err)
	}
	return e
}

func known(e *Entry, addr uint64) bool {
	_, ok := e.Append(nil, addr)
	return ok
}

func TestKept(t *testing.T) {
	c, path := openCache(t), program(t)
	filled(t, c, path)
	e := load(t, c, path, "")
	for addr, want := range map[uint64][]lines.Frame{0x1234: frames, 0xffffffffffffff00: frames[1:], 0x2000: nil} {
		if got, ok := e.Append(nil, addr); !ok || !cmp.Equal(want, got) {
			t.Errorf("%#x: %v, %+v", addr, ok, got)
		}
	}
	if known(e, 0x1235) || known(load(t, c, path, "other folders"), 0x1234) {
		t.Error("an answer that is not there")
	}
	c.Producer = "test 2"
	if known(load(t, c, path, ""), 0x1234) {
		t.Error("an answer of another program")
	}
	info, err := os.Stat(c.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(e.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	// Nothing is kept for a file that has only just been changed, or without a cache.
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Entry{load(t, c, path, ""), load(t, nil, path, "")} {
		if e.Add(1, frames); e != nil || known(e, 1) || e.Save() != nil {
			t.Error("kept")
		}
	}
}

// TestOtherFiles checks that answers are not used once a consulted file has changed, has
// appeared or has been removed.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	debug, missing := filepath.Join(dir, "debug"), filepath.Join(dir, "missing")
	for name, change := range map[string]func(path string){
		"nothing":         nil,
		"debug file":      func(string) { put(t, debug, []byte("another")) },
		"debug file gone": func(string) { os.Remove(debug) },
		"debug file made": func(string) { put(t, missing, []byte("debug")) },
		"program":         func(path string) { put(t, path, append(bytes.Clone(read(t, path)), 0)) },
		"program's time": func(path string) {
			if err := os.Chtimes(path, old, old.Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		put(t, debug, []byte("debug"))
		os.Remove(missing)
		c, path := openCache(t), program(t)
		filled(t, c, path, symbol.Consult(missing), symbol.Consult(debug))
		if change != nil {
			change(path)
		}
		if got := known(load(t, c, path, ""), 0x1234); got != (change == nil) {
			t.Errorf("%s: known %v", name, got)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestNotKept covers files that change while they are read, and files that have just been
// changed.
func TestNotKept(t *testing.T) {
	debug := filepath.Join(t.TempDir(), "debug")
	put(t, debug, []byte("debug"))
	before := symbol.Consult(debug)
	now := time.Now()
	for name, change := range map[string]func(){
		"changed":    func() { put(t, debug, []byte("longer")) },
		"two states": func() { before.Size++ },
		"just now": func() {
			if err := os.Chtimes(debug, now, now); err != nil {
				t.Fatal(err)
			}
			before = symbol.Consult(debug)
		},
	} {
		c, path := openCache(t), program(t)
		put(t, debug, []byte("debug"))
		before = symbol.Consult(debug)
		e := load(t, c, path, "")
		e.Add(1, frames)
		e.Consult([]symbol.Consulted{before})
		change()
		e.Consult([]symbol.Consulted{before})
		if err := e.Save(); err != nil {
			t.Error(err)
		}
		if list, _ := os.ReadDir(c.dir); len(list) > 0 {
			t.Errorf("%s: kept %v", name, list)
		}
	}
}

// TestBroken checks that a file with a changed byte, or a truncated one, is not used at
// all, and that the next answers replace it.
func TestBroken(t *testing.T) {
	c, path := openCache(t), program(t)
	e := filled(t, c, path)
	whole := read(t, e.path)
	for i := range whole {
		broken := bytes.Clone(whole)
		broken[i] ^= 0x41
		for _, data := range [][]byte{broken, whole[:i]} {
			put(t, e.path, data)
			if known(load(t, c, path, ""), 0x1234) {
				t.Fatalf("byte %d: known", i)
			}
		}
	}
	filled(t, c, path)
	if !known(load(t, c, path, ""), 0x1234) {
		t.Error("not replaced")
	}
	os.Remove(e.path)
	if err := os.Mkdir(e.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if again := load(t, c, path, ""); known(again, 0x1234) {
		t.Error("a folder is known")
	} else if again.Add(1, frames); again.Save() == nil {
		t.Error("written over a folder")
	}
	if list, _ := os.ReadDir(c.dir); len(list) != 1 {
		t.Errorf("not removed: %v", list)
	}
}

// TestBounded checks that the least recently used files are removed.
func TestBounded(t *testing.T) {
	c := openCache(t)
	var paths []string
	for i := range 6 {
		path := program(t)
		size := filled(t, c, path)
		info, err := os.Stat(size.path)
		if err != nil {
			t.Fatal(err)
		}
		used := old.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(size.path, used, used); err != nil {
			t.Fatal(err)
		}
		c.MaxSize = 3*info.Size() + 40 // paths differ in length
		if i == 3 {
			load(t, c, paths[1], "") // marks it as used
		}
		paths = append(paths, path)
	}
	var kept []int
	for i, path := range paths {
		if known(load(t, c, path, ""), 0x1234) {
			kept = append(kept, i)
		}
	}
	if want := []int{1, 4, 5}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	part := filepath.Join(c.dir, temporary+"1")
	put(t, part, nil)
	if err := os.Chtimes(part, old, old.Add(-maxPart)); err != nil {
		t.Fatal(err)
	}
	c.MaxSize = 10
	if e := load(t, c, paths[0], ""); e != nil {
		if e.Add(1, frames); e.Save() == nil {
			t.Error("more than there is room for")
		}
	}
	if list, _ := os.ReadDir(c.dir); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

// TestTogether checks that processes that save at the same time leave a complete file with
// the answers of at least one of them.
func TestTogether(t *testing.T) {
	c, path := openCache(t), program(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			own := *c
			for k := range 20 {
				f, err := symbol.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				e := own.Load(f, "")
				f.Close()
				e.Add(uint64(1000*i+k), frames)
				if err := e.Save(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	e := load(t, c, path, "")
	if !known(e, 19) && !slices.ContainsFunc([]uint64{1019, 2019, 3019, 4019, 5019, 6019, 7019}, func(a uint64) bool { return known(e, a) }) {
		t.Error("no answers")
	}
	if list, _ := os.ReadDir(c.dir); len(list) != 1 {
		t.Errorf("%d files", len(list))
	}
	// If they save one after the other, nothing is lost.
	a, b := load(t, c, path, ""), load(t, c, path, "")
	a.Add(1, frames)
	b.Add(2, frames[1:])
	if err := errors.Join(a.Save(), b.Save()); err != nil {
		t.Fatal(err)
	}
	if e := load(t, c, path, ""); !known(e, 1) || !known(e, 2) {
		t.Error("answers of two processes were not united")
	}
}

// TestFolders checks that only a folder of the user's own is accepted as a cache.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		mode, above os.FileMode
		want        error
	}{
		"own":                     {0o700, 0o755, nil},
		"others may read":         {0o755, 0o755, ErrForeign},
		"others may write above":  {0o700, 0o777, ErrForeign},
		"a place of all, as /tmp": {0o700, 0o777 | os.ModeSticky, nil},
	} {
		above := filepath.Join(dir, name)
		path := filepath.Join(above, "cache")
		if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, tt.mode), os.Chmod(above, tt.above)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	own := filepath.Join(dir, "own", "cache")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link); err == nil {
		t.Error("a link is opened")
	}
	if _, err := Open("/proc/self/exe/cache"); err == nil {
		t.Error("below a file")
	}
	if os.Geteuid() != 0 {
		return
	}
	// Root does not use what belongs to another user.
	user := filepath.Join(dir, "user")
	if err := errors.Join(os.MkdirAll(filepath.Join(user, "cache"), 0o700), os.Chown(filepath.Join(user, "cache"), 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(user, "cache")); !errors.Is(err, ErrForeign) {
		t.Errorf("somebody else's: %v", err)
	}
	if err := os.Chown(user, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "new/in/new"} {
		if _, err := Open(filepath.Join(user, name)); !errors.Is(err, ErrForeign) {
			t.Errorf("%s in somebody else's: %v", name, err)
		}
	}
}

// FuzzDecode checks that decoding and encoding are inverse, and that decoding takes no more
// memory than there are bytes.
func FuzzDecode(f *testing.F) {
	e := newEntry(&Cache{}, "key", "")
	e.Add(1, frames)
	e.Add(7, frames[1:])
	e.Consult([]symbol.Consulted{{Name: "/a", Size: 3, Changed: 4}, {Name: "/b", Size: -1}})
	const head = len(magic) + sha256.Size
	f.Add(e.encode()[head:])
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		first := newEntry(&Cache{}, "key", "")
		if first.decode(slices.Concat([]byte(magic), sum[:], body)) != nil {
			return
		}
		again := newEntry(&Cache{}, "key", "")
		if err := again.decode(first.encode()); err != nil {
			t.Fatal(err)
		}
		for addr := range first.lists {
			a, _ := first.Append(nil, addr)
			b, _ := again.Append(nil, addr)
			if d := cmp.Diff(fmt.Sprint(a), fmt.Sprint(b)); d != "" {
				t.Fatalf("%#x: %s", addr, d)
			}
		}
	})
}
