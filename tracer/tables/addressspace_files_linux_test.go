package tables

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/unwind"
	"rtrace-bpf/tracer/process"
)

// files maps files as code into the test's own process.
type files struct {
	*world
	space *Space
	now   []process.Mapping // the current mappings, in this order
}

func newFiles(t *testing.T) *files {
	w := newWorld(t, nil)
	return &files{world: w, space: w.of(os.Getpid(), 0)}
}

// mapFile maps a whole file, at address at or, if that is 0, anywhere. It returns the
// mapping as the kernel reports it.
func (f *files) mapFile(path string, at uint64) process.Mapping {
	f.t.Helper()
	file, err := os.Open(path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		f.t.Fatal(err)
	}
	flags := unix.MAP_PRIVATE
	if at != 0 {
		flags |= unix.MAP_FIXED
	}
	start, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(at), uintptr(info.Size()), unix.PROT_READ|unix.PROT_EXEC, uintptr(flags), file.Fd(), 0)
	if errno != 0 {
		f.t.Fatal(errno)
	}
	f.t.Cleanup(func() {
		if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, start, uintptr(info.Size()), 0); errno != 0 {
			f.t.Error(errno)
		}
	})
	all := f.mapped(f.space)
	m := all[slices.IndexFunc(all, func(m process.Mapping) bool { return m.Start == uint64(start) })]
	f.now = append(slices.DeleteFunc(f.now, m.Overlaps), m)
	return m
}

// look updates the space with the current mappings, of which fresh were mapped since the
// last look.
func (f *files) look(want bool, fresh ...process.Mapping) {
	f.t.Helper()
	// Paths may have changed: the kernel marks deleted files in them.
	all := slices.DeleteFunc(f.mapped(f.space), func(m process.Mapping) bool {
		return !slices.ContainsFunc(f.now, m.Same)
	})
	f.update(f.space, all, fresh, want)
}

// build returns the unwind table that a file has now.
func (f *files) build(path string) *unwind.Table {
	f.t.Helper()
	file, err := symbol.Open(path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	built, err := unwind.Build(file)
	if err != nil {
		f.t.Fatal(err)
	}
	return built
}

// serves fails the test unless want is the table for the code at m.
func (f *files) serves(m process.Mapping, want *unwind.Table) {
	f.t.Helper()
	p := f.at(f.space, m)
	if p.Rows == 0 {
		f.t.Errorf("%s at %#x has no table", m.Path, m.Start)
		return
	}
	f.holds(p.Table, want)
}

// A file that replaces another is a different file, even with the same name, size and
// time. The earlier one, still mapped, keeps its own table.
func TestSpaceOfReplacedFile(t *testing.T) {
	f := newFiles(t)
	flags := []string{"-shared", "-fPIC", "-g0", testutil.OmitFramePointers, "-Wl,--build-id=none"}
	one, two := testutil.Build(t, "plugs", append(flags, "-DROOM=200")...), testutil.Build(t, "plugs", append(flags, "-DROOM=2008")...)
	path, at := filepath.Join(t.TempDir(), "plug.so"), time.Unix(1_000_000_000, 0)
	testutil.CopyFile(t, one, path)
	stamp(t, path, at)
	first := f.mapFile(path, 0)
	testutil.ReplaceFile(t, path, two) // before the first look
	stamp(t, path, at)
	f.look(true)
	second := f.mapFile(path, 0)
	f.look(true)
	f.serves(first, f.build(one))
	f.serves(second, f.build(two))
	if len(f.tables.Files) != 2 || len(f.warned) > 0 {
		t.Errorf("%d tables, want 2; %q", len(f.tables.Files), f.warned)
	}
}

// A file that is mapped twice keeps its table until both mappings are gone.
func TestSpaceOfFileMappedTwice(t *testing.T) {
	f := newFiles(t)
	path, _ := testutil.Plugs(t, testutil.Build)
	first, second := f.mapFile(path, 0), f.mapFile(path, 0)
	f.look(true)
	f.now = []process.Mapping{second}
	f.look(true)
	if err := f.tables.outer.Close(); err != nil {
		t.Fatal(err)
	}
	f.serves(second, f.build(path))
	f.now = []process.Mapping{first}
	f.look(true)
	f.serves(first, f.build(path))
	f.counted(f.space)
}

// rewrite changes a file in place.
func rewrite(t *testing.T, path string, content []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file changed in place is recognised by its build ID, size or time.
func TestSpaceOfChangedFile(t *testing.T) {
	build := func(room, id string) string {
		return testutil.Build(t, "plugs", "-shared", "-fPIC", "-g0", testutil.OmitFramePointers, "-DROOM="+room, "-Wl,--build-id="+id)
	}
	early := time.Unix(1_000_000_000, 0)
	for name, test := range map[string]struct {
		before, after string
		longer        int
		at            time.Time
	}{
		"build-id": {build("200", "0x11"), build("2008", "0x22"), 0, early},
		"size":     {build("200", "none"), build("2008", "none"), 100, early},
		"time":     {build("200", "none"), build("2008", "none"), 0, early.Add(1)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t)
			path := filepath.Join(t.TempDir(), "plug.so")
			testutil.CopyFile(t, test.before, path)
			stamp(t, path, early)
			first := f.mapFile(path, 0)
			f.look(true)
			rewrite(t, path, append(contents(t, test.after), make([]byte, test.longer)...))
			stamp(t, path, test.at)
			second := f.mapFile(path, 0)
			f.look(true)
			if first.Inode != second.Inode {
				t.Fatalf("inode %d became %d", first.Inode, second.Inode)
			}
			f.serves(first, f.build(test.before))
			f.serves(second, f.build(test.after))
		})
	}
}

func stamp(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A file that was changed and mapped again at the same address looks the same in the list
// of mappings. Only the kernel's record of the new mapping shows the change.
func TestSpaceOfFileMappedAgain(t *testing.T) {
	f := newFiles(t)
	one, two := testutil.Plugs(t, testutil.Build)
	path := filepath.Join(t.TempDir(), "plug.so")
	testutil.CopyFile(t, one, path)
	first := f.mapFile(path, 0)
	f.look(true)
	slot := f.at(f.space, first).Table
	rewrite(t, path, contents(t, two))
	second := f.mapFile(path, first.Start)
	if !first.Same(second) {
		t.Fatalf("%+v became %+v: the mappings must look the same", first, second)
	}
	f.look(false)
	f.look(true, second)
	f.serves(second, f.build(two))
	f.gone(slot)
	if len(f.tables.Files) != 1 {
		t.Errorf("%d files are known, want 1", len(f.tables.Files))
	}
}
