package cover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// releases and their files. The names of the files are those of the oldest version.
var (
	releases = []string{"bullseye", "bookworm", "trixie", "sid"}
	files    = []string{
		"libc.so.6", "libjemalloc.so.2", "libmimalloc.so.2.*", "libmimalloc.so.3*", "libtcmalloc_minimal.so.4",
		"libtcmalloc.so.4", "ld-musl-*.so.1",
	}
)

// collected is a file of the collection.
type collected struct {
	release, arch, path string
}

// collection returns the files that make libc-collection has downloaded.
func collection(t *testing.T) (all []collected) {
	t.Helper()
	testutil.Extra(t, "the collection of allocators (make libc-collection)")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("SKIPPED: there is no folder for the collection of allocators: %v", err)
	}
	dir := filepath.Join(cache, "rtrace-collection")
	for _, release := range releases {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, file := range files {
				if path := collectedFile(filepath.Join(dir, release, arch), file); path != "" {
					all = append(all, collected{release, arch, path})
				}
			}
		}
	}
	if len(all) == 0 {
		t.Skip("SKIPPED: there is no collection of allocators (make libc-collection downloads it)")
	}
	return all
}

// collectedFile finds a file in the folders of libraries.
func collectedFile(root, pattern string) string {
	for _, dir := range []string{"lib", "usr/lib", "lib/*-linux-gnu", "usr/lib/*-linux-gnu"} {
		found, err := filepath.Glob(filepath.Join(root, dir, pattern))
		if err != nil {
			continue
		}
		for _, path := range found {
			// Links may lead to other packages, or be absolute.
			if to, err := filepath.EvalSymlinks(path); err == nil && strings.HasPrefix(to, root) {
				return to
			}
		}
	}
	return ""
}

// name returns the release and the file without its version.
func (c *collected) name() string {
	base, _, _ := strings.Cut(filepath.Base(c.path), ".so")
	if c.musl() {
		base = "musl"
	}
	return fmt.Sprintf("%s %s %s", c.release, c.arch, base)
}

// mustCover are the functions that may not fall back.
func (c *collected) mustCover(function string) bool {
	base := filepath.Base(c.path)
	switch {
	case c.musl():
	case strings.HasPrefix(base, "libc.so") || strings.HasPrefix(base, "libc-2"):
		// In 2.43 of arm64 the size is lost before it is known whether the block gets a tag.
		return (function == "malloc" || function == "calloc") && (c.release != "sid" || c.arch != "arm64")
	case strings.HasPrefix(base, "libjemalloc"): // 5.2 in bullseye; newer than 5.3.0 in sid
		return function == "malloc" && (c.release == "bookworm" || c.release == "trixie")
	case strings.HasPrefix(base, "libmimalloc.so.2"):
		return function == "malloc"
	}
	return false
}

// TestCollection prints the plans of all files, as docs/sites.md has them, and demands those that
// may not fall back.
func TestCollection(t *testing.T) {
	present := map[string]bool{}
	for _, c := range collection(t) {
		present[c.release+" "+c.arch] = true
		l := openLibrary(t, c.path)
		seen := map[uint64]bool{}
		for _, f := range functions {
			entry, ok := l.exports[f.Name]
			if !ok || seen[entry] {
				continue
			}
			seen[entry] = true
			f.Entry = entry
			p, err := Find(&l.Image, f, UsualCosts)
			if err != nil {
				t.Logf("| %s | %s | - | entry and return: %v |", c.name(), f.Name, reason(err))
				if c.mustCover(f.Name) {
					t.Errorf("%s: %v", c.name(), err)
				}
				continue
			}
			t.Logf("| %s | %s | %s | %s |", c.name(), f.Name, counts(p), hot(p))
			if c.mustCover(f.Name) && p.HotReturns > 0 {
				t.Errorf("%s: the hot path of %s has a return probe", c.name(), f.Name)
			}
		}
	}
	for _, release := range releases {
		for _, arch := range []string{"amd64", "arm64"} {
			if !present[release+" "+arch] {
				t.Logf("LEFT OUT: %s of %s is not in the collection", arch, release)
			}
		}
	}
}

// counts describes the sites of a plan by their roles.
func counts(p *Plan) string {
	n := map[Role]int{}
	for _, s := range p.Sites {
		n[s.Role]++
	}
	var words []string
	for _, r := range []Role{Report, Note, Finish, Return} {
		if n[r] > 0 {
			words = append(words, fmt.Sprintf("%d %v", n[r], r))
		}
	}
	return strings.Join(words, ", ")
}

// hot describes the hot path.
func hot(p *Plan) string {
	if p.HotReturns > 0 {
		return fmt.Sprintf("%d and %d return", p.HotTraps, p.HotReturns)
	}
	return fmt.Sprint(p.HotTraps)
}

// reason returns why a function is not covered.
func reason(err error) string {
	if u, ok := errors.AsType[*Unproved](err); ok {
		return u.Error()
	}
	return err.Error()
}

// loader returns the dynamic loader that belongs to a file of the collection.
func (c *collected) loader() string {
	root, _, _ := strings.Cut(c.path, filepath.Join(c.release, c.arch))
	root = filepath.Join(root, c.release, c.arch)
	for _, dir := range []string{"lib64", "lib/x86_64-linux-gnu", "usr/lib64", "usr/lib/x86_64-linux-gnu"} {
		if to, err := filepath.EvalSymlinks(filepath.Join(root, dir, "ld-linux-x86-64.so.2")); err == nil && strings.HasPrefix(to, root) {
			return to
		}
	}
	return ""
}

// libraryPath returns the folders of the libraries that belong to a file of the collection.
func (c *collected) libraryPath() string {
	root, _, _ := strings.Cut(c.path, filepath.Join(c.release, c.arch))
	root = filepath.Join(root, c.release, c.arch)
	return filepath.Join(root, "lib/x86_64-linux-gnu") + ":" + filepath.Join(root, "usr/lib/x86_64-linux-gnu")
}

// musl reports whether the file is a C library of its own kind, which the test's program is not
// compiled for.
func (c *collected) musl() bool { return strings.Contains(c.path, "musl") }
