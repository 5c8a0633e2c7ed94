package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFileNamed maps a new file into the test and returns the file and its mapping.
func mapFileNamed(t *testing.T, name string) (*os.File, Map) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(3 * 4096); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 4096, 8192, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return f, ownMap(t, uint64(uintptr(unsafe.Pointer(&mem[0]))))
}

// ownMap returns the mapping of the test at addr.
func ownMap(t *testing.T, addr uint64) Map {
	t.Helper()
	maps, err := Maps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Start == addr {
			return m
		}
	}
	t.Fatalf("nothing is mapped at %#x", addr)
	return Map{}
}

func TestPath(t *testing.T) {
	for _, name := range []string{"plain", "two  words ", "line\nfeed", "x (deleted)"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			f, m := mapFileNamed(t, path)
			if m.Offset != 4096 || m.End-m.Start != 8192 || m.Perms != Read|Shared {
				t.Errorf("mapped as %+v", m)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimSuffix(strings.ReplaceAll(path, "\n", `\012`), deletedSuffix); m.Path != want {
				t.Errorf("name %q, want %q", m.Path, want)
			}
			if m.Deleted != strings.HasSuffix(name, deletedSuffix) {
				t.Errorf("deleted %v", m.Deleted)
			}
			if os.Getuid() != 0 && m.Deleted {
				t.Skip("SKIP: map_files needs root")
			}
			got, err := os.Stat(Path(os.Getpid(), m))
			if err != nil || !os.SameFile(got, info) {
				t.Errorf("path %q is another file, %v", Path(os.Getpid(), m), err)
			}
		})
	}
}

func TestPathOfReplacedFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIP: map_files needs root")
	}
	path := filepath.Join(t.TempDir(), "library")
	f, m := mapFileNamed(t, path)
	if err := os.WriteFile(path+".new", []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	want, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Map{m, ownMap(t, m.Start)} { // as seen before and after
		got, err := os.Stat(Path(os.Getpid(), m))
		if err != nil || !os.SameFile(got, want) {
			t.Errorf("deleted %v: path %q is not the mapped file, %v", m.Deleted, Path(os.Getpid(), m), err)
		}
	}
}

// A file system with several trees or layers has other numbers in maps than in stat.
func TestPathWithForeignNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "library")
	_, m := mapFileNamed(t, path)
	m.Major, m.Minor = 77, 77
	if got, want := Path(os.Getpid(), m), file(os.Getpid(), "root")+path; got != want {
		t.Errorf("other device: path %q, want %q", got, want)
	}
	if os.Getuid() != 0 {
		t.Skip("SKIP: map_files needs root")
	}
	m.Inode++
	if got, want := Path(os.Getpid(), m), file(os.Getpid(), "root")+path; got != want {
		t.Errorf("other device and inode: path %q, want %q", got, want)
	}
}

func TestPathOfNoFile(t *testing.T) {
	for _, m := range []Map{{Path: "[heap]"}, {}, {Path: "anon_inode:[perf_event]", Inode: 9}} {
		if got := Path(os.Getpid(), m); got != "" {
			t.Errorf("%+v: path %q, want none", m, got)
		}
	}
}

func BenchmarkMaps(b *testing.B) {
	var (
		mr   MapsReader
		maps []Map
		err  error
	)
	b.ReportAllocs()
	for b.Loop() {
		if maps, err = mr.Read(maps[:0], os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}

// A list that is truncated because the process ended between two pieces is not taken for a
// complete one.
func TestMapsOfOneThatEndsMeanwhile(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file(cmd.Process.Pid, "maps"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	if emptied(f) {
		t.Error("the list of a running process counts as gone")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if !emptied(f) {
		t.Error("the list of an ended process counts as there")
	}
}
