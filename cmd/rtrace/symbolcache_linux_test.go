package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/cli"
)

// TestSymbolCache: the output of each command with a cache is the same with a cache, an
// empty one, none, and one of broken files.
func TestSymbolCache(t *testing.T) {
	file, _ := selfTrace(t)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(filepath.Dir(file), "selftrace"), old, old); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"resolve", "resolve -p -t bfd", "report -r", "convert -r -f folded", "convert -r -f speedscope"} {
		dir := filepath.Join(t.TempDir(), "cache")
		do := func(cache string) string {
			t.Helper()
			out, errOut, code := runRtrace("", append(strings.Fields(command), "--symbol-cache="+cache, file)...)
			if code != cli.OK || errOut != "" {
				t.Fatal(code, errOut)
			}
			return out
		}
		want := do("off")
		if _, err := os.Stat(dir); err == nil {
			t.Fatal("off makes a folder")
		}
		for _, when := range []string{"empty", "filled", "broken", "filled again"} {
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			if when != "empty" && len(files) == 0 {
				t.Errorf("%s: nothing was kept", command)
			}
			if when == "broken" {
				for _, name := range files {
					if err := os.WriteFile(name, []byte("rtrln"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			if do(dir) != want {
				t.Errorf("%s: with a cache that is %s the output is another one", command, when)
			}
		}
	}
	// The folder is below the user's cache folder, unless there is none.
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	runRtrace("", "resolve", file)
	if files, _ := filepath.Glob(filepath.Join(home, "rtrace", "symbols", "*")); len(files) == 0 {
		t.Error("nothing in the user's cache folder")
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", filepath.Join(home, "missing"))
	if _, errOut, code := runRtrace("", "resolve", file); code != cli.OK || errOut != "" {
		t.Error(code, errOut)
	}
	if _, err := os.Stat(filepath.Join(home, "missing")); err == nil {
		t.Error("a home was made")
	}
	// A folder that cannot be a cache is an error if the user named it.
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := runRtrace("", "resolve", "--symbol-cache="+home+"/x", file); code != cli.Failed || !strings.Contains(errOut, "symbol cache") {
		t.Error(code, errOut)
	}
	t.Setenv("XDG_CACHE_HOME", home)
	if _, errOut, code := runRtrace("", "resolve", file); code != cli.OK || errOut != "" {
		t.Error(code, errOut)
	}
}
