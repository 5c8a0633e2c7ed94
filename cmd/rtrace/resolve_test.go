package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

func TestResolveUsage(t *testing.T) {
	t.Setenv("DEBUGINFOD_URLS", "")
	trace := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(trace, []byte("version=2.0, pid=7, \n1. malloc(1) = 0x5\n\t0x5\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code cli.ExitCode
		err  string
	}{
		{[]string{trace}, cli.OK, ""},
		{[]string{"--method=bfd", "--mode", "single-cache", "--full-path", "--keep-resolved", "--quiet", "--input-file", trace}, cli.OK, ""},
		{[]string{"-t", "other", trace}, cli.Usage, "-t other: not one of bfd, elf"},
		{[]string{"-m", "other", trace}, cli.Usage, "-m other: not one of multi-pass, single-cache"},
		{[]string{"-f", "mtrc", trace}, cli.Usage, "-f mtrc: not one of text, jsonl"},
		{[]string{"-i", trace, trace}, cli.Usage, "one FILE at most"},
		{[]string{"-o", trace, trace}, cli.Usage, "both input and output"},
		{[]string{"-r", "/nonesuch", trace}, cli.Failed, "--root /nonesuch: no such file"},
		{[]string{"--debug-dir", trace, trace}, cli.Usage, "is not a directory"},
		{[]string{"--debuginfod", trace}, cli.Usage, "name a server"},
		{[]string{"--debuginfod=nonesuch", trace}, cli.Usage, "not the URL of a server"},
		{[]string{trace + "x"}, cli.Failed, "no such file"},
	} {
		out, errOut, code := runRtrace("", append([]string{"resolve"}, tt.args...)...)
		if code != tt.code || !strings.Contains(errOut, tt.err) || tt.err == "" && errOut != "" {
			t.Errorf("%q: exit code %d, %q", tt.args, code, errOut)
		}
		if code == cli.OK && out != "version=2.0, pid=7, filter=resolve, \n1. malloc(1) = 0x5\n\t0x5 in ??\n\n" {
			t.Errorf("%q: %q", tt.args, out)
		}
	}
}

// Existing texts are replaced if more is known, and with -k never.
func TestResolveKeeps(t *testing.T) {
	const in = "version=2.0, pid=7, \n: /nonesuch => 0x1000-0x2000\n1. malloc(1) = 0x5\n\t0x1005 main() at a.c:1\n\t0x1006 from /old\n\t0x1007 in ??\n\t0x1008\n\t0x5 from /old\n\n"
	for _, tt := range []struct{ flag, want string }{
		{"-q", "\t0x1005 main() at a.c:1\n\t0x1006 from /nonesuch\n\t0x1007 from /nonesuch\n\t0x1008 from /nonesuch\n\t0x5 from /old\n"},
		{"-qk", "\t0x1005 main() at a.c:1\n\t0x1006 from /old\n\t0x1007 from /nonesuch\n\t0x1008 from /nonesuch\n\t0x5 from /old\n"},
	} {
		out, errOut, code := runRtrace(in, "resolve", tt.flag)
		if code != cli.OK || errOut != "" || !strings.HasSuffix(out, "= 0x5\n"+tt.want+"\n") {
			t.Errorf("%s: exit code %d, %q\n%s", tt.flag, code, errOut, out)
		}
	}
}

// A mapping that comes late in a text also counts for earlier calls, even from a pipe;
// otherwise the latest mapping before a call counts. In the tracer's texts mappings are in
// order, and an address uses the mappings so far.
func TestResolveLateMappings(t *testing.T) {
	const calls = "1. f(1) = 0x5\n\t0x1005\n\n: /one => 0x1000-0x2000\n2. f(1) = 0x6\n\t0x1005\n\n: /two => 0x1000-0x2000\n3. f(1) = 0x7\n\t0x1005\n\n"
	const (
		in  = "version=2.0, filter=resolve, \n" + calls
		own = "version=2.0, filter=resolve, origin=rtrace-bpf 1, \n" + calls
	)
	file := filepath.Join(t.TempDir(), "trace.txt")
	if err := os.WriteFile(file, []byte(in), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		stdin string
		args  []string
		want  []string
	}{
		{"", []string{file}, []string{"from /two", "from /one", "from /two"}},
		{in, nil, []string{"from /two", "from /one", "from /two"}},
		{own, nil, []string{"in ??", "from /one", "from /two"}},
	} {
		out, _, code := runRtrace(tt.stdin, append([]string{"resolve", "-q"}, tt.args...)...)
		want := cmp.Or(tt.stdin, in)
		for _, text := range tt.want {
			want = strings.Replace(want, "0x1005\n", "0x1005 "+text+"\n", 1)
		}
		if code != cli.OK || out != want {
			t.Errorf("%q: exit code %d\n%s\nwant\n%s", tt.args, code, out, want)
		}
	}
}

// Damaged and hostile inputs end with one line.
func TestResolveDamage(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		code cli.ExitCode
		out  string
	}{
		"empty":           {"", cli.Failed, ""},
		"other":           {"GARBAGE\nMORE\n", cli.Failed, ""},
		"cut text":        {"version=2.0, filter=resolve, \n1. malloc(1) = 0x5\n\t0x10", cli.Incomplete, "version=2.0, filter=resolve, \n1. malloc(1) = 0x5\n\t0x10"},
		"cut binary":      {"\xf0\x0e\x02\x00\x06x86_64\x00\x08\x00\x00\x00PINF", cli.Incomplete, "version=2.0, arch=x86_64, filter=resolve, \n"},
		"mapping of all":  {"version=2.0, filter=resolve, \n: /etc/passwd => 0x0-0xffffffffffffffff\n1. f(1) = 0x5\n\t0x0\n\n", cli.OK, ""},
		"a huge path":     {"version=2.0, filter=resolve, \n: /" + strings.Repeat("x", 60000) + " => 0x0-0x1000\n1. f(1) = 0x5\n\t0x10\n\n", cli.OK, ""},
		"escape sequence": {"version=2.0, filter=resolve, \n: /\x1b[31m => 0x0-0x1000\n1. f(1) = 0x5\n\t0x10\n\n", cli.OK, ""},
	} {
		out, errOut, code := runRtrace(tt.in, "resolve")
		if code != tt.code || tt.out != "" && out != tt.out || strings.Count(errOut, "\n") > 1 || strings.Contains(errOut, "\x1b") {
			t.Errorf("%s: exit code %d, %q, %q", name, code, out, errOut)
		}
	}
}
