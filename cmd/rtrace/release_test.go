//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// have reports whether a program exists that the test needs for a check, and logs if it does
// not.
func have(t *testing.T, program string) bool {
	t.Helper()
	_, err := exec.LookPath(program)
	if err != nil {
		t.Logf("not checked by %s: it is not installed", program)
	}
	return err == nil
}

// TestManualPages: each subcommand has a manual page, and man accepts it without warnings.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if out, errOut, code := runRtrace("", "--generate", dir); code != cli.OK || out != "" || errOut != "" {
		t.Fatalf("exit code %d, %s%s", code, out, errOut)
	}
	byMan := have(t, "man")
	for _, c := range append([]command{{name: ""}}, commands()...) {
		name := strings.TrimSuffix("rtrace-"+c.name, "-")
		file := filepath.Join(dir, "man", "man1", name+".1")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, section := range []string{".TH ", ".SH NAME\n" + strings.ReplaceAll(name, "-", `\-`) + ` \- `, ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH EXAMPLES\n", ".SH EXIT STATUS\n", ".SH SEE ALSO\n"} {
			if !strings.Contains(string(b), section) {
				t.Errorf("%s has no %q", name, section)
			}
		}
		if !byMan {
			continue
		}
		cmd := exec.Command("man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l", file)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANROFFSEQ=", "MANWIDTH=80")
		var problems strings.Builder
		cmd.Stderr = &problems
		if err := cmd.Run(); err != nil || problems.Len() > 0 {
			t.Errorf("%s: %v\n%s", name, err, problems.String())
		}
	}
	if _, errOut, code := runRtrace("", "--generate"); code != cli.Usage || errOut == "" {
		t.Errorf("without a folder: exit code %d", code)
	}
}

// TestBashCompletion asks bash for its offers.
func TestBashCompletion(t *testing.T) {
	if !have(t, "bash") {
		return
	}
	script := filepath.Join(t.TempDir(), "completion")
	if err := os.WriteFile(script, []byte(program().Bash()), 0o644); err != nil {
		t.Fatal(err)
	}
	offers := func(words ...string) []string {
		t.Helper()
		cmd := exec.Command("bash", append([]string{"--norc", "-c", `
			source "$0" || exit
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			_rtrace && printf '%s\n' "${COMPREPLY[@]}"`, script}, words...)...)
		cmd.Dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(cmd.Dir, "a trace"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(cmd.Dir, "folder"), 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	for _, tt := range []struct{ words, want []string }{
		{[]string{"rtrace", "post"}, []string{"postproc"}},
		{[]string{"rtrace", "help", "heap"}, []string{"heapmap"}},
		{[]string{"/usr/bin/rtrace", "--v"}, []string{"--version"}},
		{[]string{"rtrace", "postproc", "--call"}, []string{"--call-address"}},
		{[]string{"rtrace-postproc", "-l", "--filter"}, []string{"--filter-leaks"}},
		{[]string{"sp-rtrace-pagemap", "--filter-p"}, []string{"--filter-page"}},
		{[]string{"rtrace", "leaks", "a"}, []string{"a trace"}},
		{[]string{"rtrace", "leaks", "--by", "fun"}, []string{"function"}},
		{[]string{"rtrace", "leaks", "--by", "=", "m"}, []string{"module"}},
		{[]string{"rtrace", "leaks", "--by=m"}, []string{"module"}},
		{[]string{"rtrace", "convert", "-f", ""}, []string{"sprtrace", "text", "jsonl", "mtrc", "swap", "nettrace", "pprof", "folded", "speedscope", "dhat", "heaptrack", "parquet"}},
		{[]string{"rtrace-convert", "--labels", "thread,f"}, []string{"thread,function"}},
		{[]string{"rtrace", "leaks", "--top", ""}, []string{""}},
		{[]string{"rtrace", "mptrace", "--legacy", "a"}, []string{"a trace"}},
		{[]string{"rtrace", "mptrace", "--legacy", "=", "fix"}, []string{"fixed64"}},
		{[]string{"rtrace", "report", "-o", "a"}, []string{"a trace"}},
		{[]string{"rtrace", "report", "--symbol-cache", "=", ""}, []string{"folder"}},
	} {
		if got := offers(tt.words...); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.words, got, tt.want)
		}
	}
}

// TestPackage makes a package of a small folder and has Debian's own program read it. The
// same files make the same package.
func TestPackage(t *testing.T) {
	for _, tool := range []string{"ar", "tar", "md5sum"} {
		if !have(t, tool) {
			return
		}
	}
	root, dir := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr", "bin", "rtrace"), []byte("#!/bin/true\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("rtrace", filepath.Join(root, "usr", "bin", "rtrace-leaks")); err != nil {
		t.Fatal(err)
	}
	output := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	t.Setenv("DEBFULLNAME", "A. N. Other")
	t.Setenv("DEBEMAIL", "other@demo.example")
	var packages []string
	for _, name := range []string{"one.deb", "two.deb"} {
		file := filepath.Join(dir, name)
		output("../../.ci/deb", "1.2.3", "arm64", root, file)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, string(b))
	}
	if packages[0] != packages[1] {
		t.Error("two packages of the same files differ")
	}
	file := filepath.Join(dir, "one.deb")
	if got, want := output("ar", "t", file), "debian-binary\ncontrol.tar.gz\ndata.tar.gz\n"; got != want {
		t.Errorf("members %q, want %q", got, want)
	}
	if !have(t, "dpkg-deb") {
		return
	}
	if got := output("dpkg-deb", "-f", file, "Package", "Version", "Architecture", "Maintainer"); got != "Package: rtrace-bpf\nVersion: 1.2.3\nArchitecture: arm64\nMaintainer: A. N. Other <other@demo.example>\n" {
		t.Errorf("fields:\n%s", got)
	}
	output("dpkg-deb", "-x", file, filepath.Join(dir, "x"))
	if b, err := os.ReadFile(filepath.Join(dir, "x", "usr", "bin", "rtrace-leaks")); err != nil || string(b) != "#!/bin/true\n" {
		t.Errorf("%q, %v", b, err)
	}
	output("dpkg-deb", "-e", file, filepath.Join(dir, "control"))
	if out, err := exec.Command("sh", "-c", "cd '"+filepath.Join(dir, "x")+"' && md5sum -c '"+filepath.Join(dir, "control", "md5sums")+"'").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// The default maintainer is the author of the last commit.
	author, err := exec.Command("git", "log", "-1", "--format=%an <%ae>").Output()
	if err != nil {
		t.Logf("the author of the last commit is not checked: %v", err)
		return
	}
	t.Setenv("DEBFULLNAME", "")
	t.Setenv("DEBEMAIL", "")
	output("../../.ci/deb", "1.2.3", "arm64", root, file)
	if got := output("dpkg-deb", "-f", file, "Maintainer"); got != string(author) {
		t.Errorf("maintainer %q, want %q", got, author)
	}
}

// runIn runs a command in a folder and returns what it printed.
func runIn(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@demo.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@demo.example",
		"GIT_COMMITTER_DATE=1700000000 +0000", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return strings.TrimSpace(string(out))
}

// The version is that of the sources, with or without git's folder.
func TestVersionOfSources(t *testing.T) {
	if !have(t, "git") {
		return
	}
	script, err := os.ReadFile("../../.ci/version")
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
				runIn(t, dir, "git", "init", "-q")
				runIn(t, dir, "git", "add", ".")
				runIn(t, dir, "git", "commit", "-q", "-m", "all")
			}
			if tt.tag != "" {
				runIn(t, dir, "git", "tag", tt.tag)
			}
			if tt.changed {
				if err := os.WriteFile(changes, []byte("more\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := runIn(t, dir, path); !regexp.MustCompile("^" + tt.want + "$").MatchString(got) {
				t.Errorf("version %s, want %s", got, tt.want)
			}
			if got := runIn(t, dir, path, "--time"); !regexp.MustCompile("^" + tt.time + "$").MatchString(got) {
				t.Errorf("time %s, want %s", got, tt.time)
			}
		})
	}
}

// Programs built by the Makefile know their version without git's stamp, also in packages.
func TestVersionIsLinked(t *testing.T) {
	if !have(t, "make") {
		return
	}
	const root = "../.."
	build := runIn(t, root, "make", "-s", "-n", "build", "VERSION=9.8.7")
	i := strings.LastIndex(build, "\n") + 1
	dir := t.TempDir()
	t.Setenv("GOFLAGS", "-buildvcs=false")
	runIn(t, root, "sh", "-c", strings.Replace(build[i:], " -o bin/ ", " -o "+dir+"/ ", 1))
	for _, program := range []string{"rtrace", "rtrace-bpf"} {
		if got := runIn(t, root, filepath.Join(dir, program), "--version"); !strings.HasPrefix(got, program+" 9.8.7 go1.") {
			t.Errorf("%s", got)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile")) // make -n release would do part of it
	if err != nil {
		t.Fatal(err)
	}
	_, release, _ := strings.Cut(string(makefile), "\nrelease: ")
	for _, want := range []string{"$(BUILD) -o dist/$$arch/ ", ".ci/copyright dist/deb-$$arch/usr/share/doc/rtrace-bpf/copyright ", "$$(.ci/version --time)"} {
		if !strings.Contains(release, want) {
			t.Errorf("make release does not do %q", want)
		}
	}
}

// The package's copyright file has both licences, in the form that Debian's programs read,
// and each file has one.
func TestCopyright(t *testing.T) {
	text, err := os.ReadFile("../../.ci/copyright")
	if err != nil {
		t.Fatal(err)
	}
	texts, of := map[string]string{}, map[string]string{} // of licences, and licences of patterns
	for i, paragraph := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		fields := map[string]string{}
		last := ""
		for line := range strings.Lines(paragraph) {
			switch name, value, ok := strings.Cut(line, ":"); {
			case line[0] == ' ' && last != "":
				fields[last] += line
			case ok:
				last = name
				fields[last] = strings.TrimSpace(value) + "\n"
			default:
				t.Fatalf("no field: %s", line)
			}
		}
		short, long, _ := strings.Cut(fields["License"], "\n")
		switch {
		case i == 0:
			if want := "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"; fields["Format"] != want {
				t.Errorf("format %q", fields["Format"])
			}
		case fields["Files"] != "":
			if fields["Copyright"] == "" || short == "" {
				t.Errorf("something is missing: %q", fields)
			}
			for pattern := range strings.FieldsSeq(fields["Files"]) {
				of[pattern] = short
			}
		default:
			texts[short] = long
		}
	}
	want := map[string]string{"*": "Apache-2.0", "bpf/*": "GPL-2.0-only or BSD-2-Clause", "tracer/*_bpfel.o": "GPL-2.0-only or BSD-2-Clause"}
	if diff := cmp.Diff(want, of); diff != "" {
		t.Errorf("licences of files (-want +got)\n%s", diff)
	}
	for name, of := range map[string]string{"Apache-2.0": "/usr/share/common-licenses/Apache-2.0", "GPL-2.0-only": "/usr/share/common-licenses/GPL-2", "BSD-2-Clause": "Redistributions in binary form must"} {
		if !strings.Contains(texts[name], of) {
			t.Errorf("the text of %s: %q", name, texts[name])
		}
	}
}
