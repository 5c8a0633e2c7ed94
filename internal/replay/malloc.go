package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// CLibrary is the name of the C library's malloc.
const CLibrary = "glibc"

// Malloc is a malloc to replay with.
type Malloc struct {
	Name string // for tables
	Path string // library to preload; empty for the C library
}

// library is a known malloc library.
type library struct {
	name    string
	sonames []string // in order of preference
	debian  string   // package
}

var libraries = []library{
	{"jemalloc", []string{"libjemalloc.so.2", "libjemalloc.so.1"}, "libjemalloc2"},
	{"tcmalloc", []string{"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}, "libtcmalloc-minimal4"},
	{"mimalloc", []string{"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"}, "libmimalloc2.0"},
}

// triples holds Debian's names of library folders by GOARCH.
var triples = map[string]string{
	"386": "i386-linux-gnu", "amd64": "x86_64-linux-gnu", "arm": "arm-linux-gnueabihf", "arm64": "aarch64-linux-gnu",
	"ppc64le": "powerpc64le-linux-gnu", "riscv64": "riscv64-linux-gnu", "s390x": "s390x-linux-gnu",
}

// libraryDirs returns the folders that are searched for libraries.
func libraryDirs() []string {
	dirs := []string{"/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/lib64", "/usr/lib", "/lib"}
	if t, ok := triples[runtime.GOARCH]; ok {
		dirs = append([]string{"/usr/local/lib/" + t, "/usr/lib/" + t, "/lib/" + t}, dirs...)
	}
	return dirs
}

// find returns the path of a library, or "".
func (l *library) find(dirs []string) string {
	for _, soname := range l.sonames {
		for _, dir := range dirs {
			path := filepath.Join(dir, soname)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

// FindMalloc returns the malloc with a name ("glibc", "jemalloc", "tcmalloc",
// "mimalloc") or a path, which contains a slash or ends in .so.
func FindMalloc(name string) (Malloc, error) { return findMalloc(name, libraryDirs()) }

func findMalloc(name string, dirs []string) (Malloc, error) {
	if name == CLibrary {
		return Malloc{Name: name}, nil
	}
	if strings.Contains(name, "/") || strings.HasSuffix(name, ".so") {
		return mallocFile(name)
	}
	i := slices.IndexFunc(libraries, func(l library) bool { return l.name == name })
	if i < 0 {
		return Malloc{}, fmt.Errorf("unknown malloc %q: use %s, or the path of a library", name, strings.Join(MallocNames(), ", "))
	}
	l := &libraries[i]
	path := l.find(dirs)
	if path == "" {
		return Malloc{}, fmt.Errorf("%s is not installed: %s was not found (Debian package: %s)", name, l.sonames[0], l.debian)
	}
	return Malloc{name, path}, nil
}

func mallocFile(path string) (Malloc, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Malloc{}, fmt.Errorf("looking for the malloc library: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Malloc{}, fmt.Errorf("malloc library %s is not a regular file", path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Malloc{}, fmt.Errorf("malloc library %s: %w", path, err)
	}
	if strings.ContainsAny(abs, " \t\n:") {
		return Malloc{}, fmt.Errorf("malloc library %s cannot be preloaded: its path contains a blank or a colon", abs)
	}
	return Malloc{filepath.Base(path), abs}, nil
}

// MallocNames returns the names that FindMalloc knows.
func MallocNames() []string {
	names := []string{CLibrary}
	for i := range libraries {
		names = append(names, libraries[i].name)
	}
	return names
}

// Installed returns the C library's malloc and the known malloc libraries that
// are installed.
func Installed() []Malloc {
	var found []Malloc
	for _, name := range MallocNames() {
		if m, err := FindMalloc(name); err == nil {
			found = append(found, m)
		}
	}
	return found
}

// servedBy checks that the calls of a run went to m. path is the file whose
// malloc served them.
func (m *Malloc) servedBy(path string) error {
	if m.Path == "" {
		base := filepath.Base(path)
		if strings.HasPrefix(base, "libc.") || strings.HasPrefix(base, "libc-") || strings.HasPrefix(base, "ld-musl-") {
			return nil
		}
		return fmt.Errorf("malloc is from %s although nothing was preloaded: check /etc/ld.so.preload", path)
	}
	want, err := os.Stat(m.Path)
	if err != nil {
		return err
	}
	if got, err := os.Stat(path); err != nil || !os.SameFile(want, got) {
		return fmt.Errorf("malloc is from %s, not from %s", path, m.Path)
	}
	return nil
}
