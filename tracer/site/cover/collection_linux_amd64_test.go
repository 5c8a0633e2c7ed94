package cover

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCollectionRuns runs the allocators of the collection that are for this machine, each with
// the loader and the C library of its release.
func TestCollectionRuns(t *testing.T) {
	program, err := compileCalls()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range collection(t) {
		if x.arch != "amd64" || x.musl() {
			continue
		}
		t.Run(x.name(), func(t *testing.T) {
			loader := x.loader()
			if loader == "" {
				t.Skip("SKIPPED: the release's loader is not in the collection")
			}
			c := command{program: program, library: x.path}
			c.prefix = []string{loader, "--library-path", x.libraryPath()}
			var preload []string
			if x.release == "bullseye" {
				preload = []string{"libpthread.so.0", "libdl.so.2"} // later releases have them in the C library
			}
			if !strings.HasPrefix(filepath.Base(x.path), "libc") || strings.Contains(x.path, "tcmalloc") {
				preload = append(preload, x.path)
			}
			if len(preload) > 0 {
				c.prefix = append(c.prefix, "--preload", strings.Join(preload, " "))
			}
			runPlans(t, c, openLibrary(t, x.path))
		})
	}
}
