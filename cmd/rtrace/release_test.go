//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// have says whether a program is there to check something by, and logs if not.
func have(t *testing.T, program string) bool {
	t.Helper()
	_, err := exec.LookPath(program)
	if err != nil {
		t.Logf("not checked by %s: it is not installed", program)
	}
	return err == nil
}

// TestManualPages: there is one for each subcommand, and man has nothing to say
// against it.
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

// TestBashCompletion asks bash what it would offer.
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
		{[]string{"rtrace", "leaks", ""}, []string{"a trace"}},
	} {
		if got := offers(tt.words...); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.words, got, tt.want)
		}
	}
}

// TestPackage makes a package of a small folder and has Debian's own program
// look into it. The same files make the same package.
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
	// By itself it names who made the last commit.
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
