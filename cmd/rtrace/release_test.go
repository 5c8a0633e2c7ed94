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
