package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// output runs a command in a folder and returns what it printed.
func output(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@demo.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@demo.example",
		"GIT_COMMITTER_DATE=1700000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
		"MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=", "DEBFULLNAME=", "DEBEMAIL=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes a repository with one commit of the sources as they are now.
func repository(t *testing.T, dir string) {
	t.Helper()
	output(t, "..", "sh", "-euc", `mkdir "$0" && tar --exclude=./.git --exclude=./bin --exclude=./dist -cf - . | tar -C "$0" -xf -`, dir)
	output(t, dir, "git", "init", "-q")
	output(t, dir, "git", "add", ".")
	output(t, dir, "git", "commit", "-q", "-m", "all")
}

// version is that of the only commit, before its revision.
const version = "0~20231114."

// place is how a release is made: each place makes the same files.
type place struct{ umask, zone, locale, cache string }

// build makes a release in a folder of sources, and returns its files. The cache of the
// compiler is the user's, unless the place has its own.
func (p *place) build(t *testing.T, dir string) string {
	t.Helper()
	t.Setenv("TZ", p.zone)
	t.Setenv("LC_ALL", p.locale)
	if p.cache != "" {
		t.Setenv("GOCACHE", p.cache)
	}
	output(t, dir, "sh", "-c", `umask "$0" && make release ARCHES="$1"`, p.umask, arches())
	return filepath.Join(dir, "dist")
}

// whole reports whether to compile everything twice, for all architectures.
func whole() bool { return os.Getenv("RTRACE_RELEASE") == "whole" }

// arches are the architectures of the release under test.
func arches() string {
	if whole() {
		return "amd64 arm64"
	}
	return runtime.GOARCH
}
