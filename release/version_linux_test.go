package release

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// The version is that of the sources, with or without git's folder.
func TestVersionOfSources(t *testing.T) {
	script, err := os.ReadFile("../.ci/version")
	if err != nil {
		t.Fatal(err)
	}
	archived := func(text string) string {
		before, after, _ := strings.Cut(string(script), "archived='")
		_, after, ok := strings.Cut(after, "'")
		if !ok {
			t.Fatal("the script has no place for what git writes into archives")
		}
		return before + "archived='" + text + "'" + after
	}
	for name, tt := range map[string]struct {
		script, changes, tag string
		git, changed         bool
		want, time           string // patterns
	}{
		"copy":                  {script: string(script), changes: "## [Unreleased]\n", want: `0~unknown`, time: `\d+`},
		"copy of a release":     {script: string(script), changes: "## [Unreleased]\n## [1.2.3] - 2026-01-02\n## [1.2.2]\n", want: `1\.2\.3`, time: `\d+`},
		"archive":               {script: archived("1700000000 2026-11-24.abc123 "), want: `0~20261124\.abc123`, time: `1700000000`},
		"archive by old git":    {script: archived("1700000000 2026-11-24.abc123 %(describe:tags=true)"), want: `0~20261124\.abc123`, time: `1700000000`},
		"archive of a release":  {script: archived("1700000000 2026-11-24.abc123 v1.2.3"), want: `1\.2\.3`, time: `1700000000`},
		"archive after release": {script: archived("1700000000 2026-11-24.abc123 v1.2.3-4-gabc123"), want: `1\.2\.3\+4\+gabc123`, time: `1700000000`},
		"repository":            {script: string(script), git: true, want: `0~20231114\.[0-9a-f]+`, time: `1700000000`},
		"changed":               {script: string(script), git: true, changed: true, want: `0~20231114\.[0-9a-f]+\+changed`, time: `1700000000`},
		"tagged":                {script: string(script), git: true, tag: "v1.2.3", want: `1\.2\.3`, time: `1700000000`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, ".ci", "version")
			changes := filepath.Join(dir, "CHANGELOG.md")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(tt.script), 0o755), os.WriteFile(changes, []byte(tt.changes), 0o644)); err != nil {
				t.Fatal(err)
			}
			if tt.git {
				output(t, dir, "git", "init", "-q")
				output(t, dir, "git", "add", ".")
				output(t, dir, "git", "commit", "-q", "-m", "all")
			}
			if tt.tag != "" {
				output(t, dir, "git", "tag", tt.tag)
			}
			if tt.changed {
				if err := os.WriteFile(changes, []byte("more\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := output(t, dir, path); !regexp.MustCompile("^" + tt.want + "$").MatchString(got) {
				t.Errorf("version %s, want %s", got, tt.want)
			}
			if got := output(t, dir, path, "--time"); !regexp.MustCompile("^" + tt.time + "$").MatchString(got) {
				t.Errorf("time %s, want %s", got, tt.time)
			}
		})
	}
}

// Programs built by the Makefile know their version without git's stamp.
func TestVersionIsLinked(t *testing.T) {
	const root = ".."
	build := output(t, root, "make", "-s", "-n", "build", "VERSION=9.8.7")
	i := strings.LastIndex(build, "\n") + 1
	dir := t.TempDir()
	t.Setenv("GOFLAGS", "-buildvcs=false")
	output(t, root, "sh", "-c", strings.Replace(build[i:], " -o bin/ ", " -o "+dir+"/ ", 1))
	for _, program := range []string{"rtrace", "rtrace-bpf"} {
		if got := output(t, root, filepath.Join(dir, program), "--version"); !strings.HasPrefix(got, program+" 9.8.7 go1.") {
			t.Errorf("%s", got)
		}
	}
}

// Debian's and Fedora's programs sort versions by age.
func TestVersionsSort(t *testing.T) {
	testutil.Extra(t, "rpm")
	versions := []string{"0~20261127.fff", "0~20261128.000", "0~20261128.000+changed", "0.1", "1.2.3", "1.2.3+4+gfff", "1.2.3+10+g000", "1.2.4", "1.10.0"}
	for i, older := range versions[:len(versions)-1] {
		newer := versions[i+1]
		output(t, ".", "dpkg", "--compare-versions", older, "lt", newer)
		if got := output(t, ".", "rpm", "--eval", "%{lua: print(rpm.vercmp('"+older+"', '"+newer+"'))}"); got != "-1" {
			t.Errorf("rpm compares %s with %s as %s", older, newer, got)
		}
	}
}
