package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// text runs rtrace postproc and returns its output, which must be the only one.
func postprocText(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, errOut, code := runRtrace(stdin, append([]string{"postproc"}, args...)...)
	if code != cli.OK || errOut != "" {
		t.Fatalf("%q: exit code %d, stderr %q", args, code, errOut)
	}
	return out
}

// TestPostprocBinary: a text survives conversion to the binary form and back, with contexts,
// arguments, flags of resources and the state of the heap.
func TestPostprocBinary(t *testing.T) {
	for _, c := range corpusCases(t) {
		if !strings.HasSuffix(c.name, "/plain.txt") && !strings.HasSuffix(c.name, "-l.txt") && !strings.HasSuffix(c.name, "/b2.txt") {
			continue
		}
		want := postprocText(t, "", append(c.flags, c.input)...)
		if strings.HasSuffix(c.name, "l.txt") {
			want = want[:strings.Index(want, "# Resource - ")] // a binary trace has no summary
			want = strings.Replace(want, "filter=leaks, ", "", 1)
		}
		direct := postprocText(t, "", append(c.flags, "-f", "sprtrace", c.input)...)
		through := postprocText(t, postprocText(t, want), "--format=sprtrace")
		for way, binary := range map[string]string{"direct": direct, "through text": through} {
			if !strings.HasPrefix(binary, "\xf0") {
				t.Fatalf("%s: %s: %q", c.name, way, binary[:min(10, len(binary))])
			}
			// Frees whose allocations were left out are not unmatched without these.
			got := postprocText(t, binary)
			ignore := func(s string) string {
				lines := strings.SplitAfter(body(s), "\n")
				kept := lines[:0]
				for _, l := range lines {
					if !strings.HasPrefix(l, "## unmatched frees: ") && !strings.Contains(l, "lowest block") && !strings.Contains(l, "highest block") {
						_, call, ok := strings.Cut(l, ". ")
						if ok && l[0] >= '0' && l[0] <= '9' {
							l = call // calls are numbered again
						}
						kept = append(kept, l)
					}
				}
				return strings.Join(kept, "")
			}
			if d := cmp.Diff(ignore(want), ignore(got)); d != "" {
				t.Errorf("%s: %s (-text +binary):\n%s", c.name, way, d)
			}
		}
	}
}

// TestPostprocOddText: odd forms in a text survive both conversions.
func TestPostprocOddText(t *testing.T) {
	in := "version=2.0, arch=x86_64, process=/bin/a\\x2cb, pid=7, backtrace depth=3, \n" +
		"@ 1 : start up, slowly\n@ 4 : gui\n" +
		"<1> : memory (memory allocation in bytes)\n<20> : thing (a (very\\x29 odd thing) [refcount]\n" +
		": /lib/a\\x20b.so => 0x1000-0x2000\n" +
		"1. @5 operator new[](unsigned long)<memory>(5000000000) = 0x10\n\t$path = a\\x20file\n\t$empty = \n\t0x1001\n\t0x1002\n\n" +
		"2. f<int><thing>(1) = 0x5\n\n3. f<int><thing>(1) = 0x5\n\n4. unref<thing>(0x5)\n\n5. [23:59:59.999] free<memory>(0x10)\n\n"
	want := postprocText(t, in)
	if !strings.Contains(want, "\t$path = a\\x20file\n\t$empty = \n\t0x1001\n") || !strings.Contains(want, "@ 1 : start up, slowly\n") ||
		!strings.Contains(want, "\n1. @5 operator new[](unsigned long)<memory>(5000000000) = 0x10\n") {
		t.Fatalf("text:\n%s", want)
	}
	binary := postprocText(t, in, "-f", "sprtrace")
	got := postprocText(t, binary)
	// Sizes of 2 GiB and more do not fit without a side file.
	want = strings.Replace(body(want), "(5000000000)", "(2147483647)", 1)
	if d := cmp.Diff(want, body(got)); d != "" {
		t.Errorf("(-text +binary):\n%s", d)
	}
	leaks := body(postprocText(t, binary, "-l", "-a", "-C", "0"))
	if strings.Contains(leaks, "unref") || !strings.Contains(leaks, "\n2. f<int><thing>(1) = 0x5\n") || !strings.Contains(leaks, "(a (very) odd thing):\n# 1 block(s) leaked") {
		t.Errorf("leaks:\n%s", leaks)
	}
}

// TestPostprocBinarySide: 64-bit sizes are passed from side file to side file.
func TestPostprocBinarySide(t *testing.T) {
	dir := t.TempDir()
	in := jsonlTrace(t,
		&trace.Record{Kind: trace.KindCall, Time: 1e6, PID: 7, Call: trace.Call{Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 4, ID: 0x10, Size: 5 << 32, Stack: trace.Stack{Frames: []uint64{1}, End: trace.StackComplete}}},
		&trace.Record{Kind: trace.KindCall, Time: 2e6, PID: 7, Call: trace.Call{Seq: 2, Op: trace.OpAlloc, Function: "malloc", Resource: 4, ID: 0x20, Size: 7, Stack: trace.Stack{Frames: []uint64{2}, End: trace.StackComplete}}},
		&trace.Record{Kind: trace.KindCall, Time: 3e6, PID: 7, Call: trace.Call{Seq: 3, Op: trace.OpMove, Function: "realloc", Resource: 4, OldID: 0x20, ID: 0x20, Size: 6 << 32, Stack: trace.Stack{Frames: []uint64{1}, End: trace.StackComplete}}},
		&trace.Record{Kind: trace.KindEnd},
	)
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if _, errOut, code := runRtrace(in, "postproc", "-q", "-f", "sprtrace", "-o", one); code != cli.OK || errOut != "" {
		t.Fatalf("exit code %d, %s", code, errOut)
	}
	if _, errOut, code := runRtrace("", "postproc", "-q", "-f", "sprtrace", "--exclude", writeFile(t, "1\n"), "-o", two, one); code != cli.OK || errOut != "" {
		t.Fatalf("exit code %d, %s", code, errOut)
	}
	for file, want := range map[string]string{
		one: "# allocation summary: 2 block(s) with total size 47244640256\n\t0x1\n\n# Resource - memory (x):\n# 2 block(s) leaked with total size of 47244640256 bytes\n",
		two: "# allocation summary: 1 block(s) with total size 25769803776\n\t0x1\n\n# Resource - memory (x):\n# 1 block(s) leaked with total size of 25769803776 bytes\n",
	} {
		if _, err := os.Stat(file + ".side"); err != nil {
			t.Error(err)
		}
		if out := postprocText(t, "", "-l", "-c", file); !strings.HasSuffix(out, want) {
			t.Errorf("%s:\n%s", filepath.Base(file), out)
		}
		if plain := postprocText(t, "", file); !strings.Contains(plain, "realloc(25769803776) = 0x20\n") {
			t.Errorf("%s:\n%s", filepath.Base(file), plain)
		}
	}
	s := cli.Streams{In: strings.NewReader(in), Out: &strings.Builder{}, Err: &strings.Builder{}, OutTerminal: true}
	if code := run(t.Context(), s, []string{"rtrace", "postproc", "-f", "sprtrace"}); code != cli.Usage {
		t.Errorf("binary to a terminal: exit code %d", code)
	}
}

// writeFile creates a file with a text.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPostprocGroups: without --legacy stacks are cut before calls are grouped, calls
// without a stack are a group, and other records between calls come after them. Read again,
// the calls are in order.
func TestPostprocGroups(t *testing.T) {
	in := "version=2.0, pid=7, \n<1> : memory (x)\n" +
		"1. malloc(8) = 0x10\n\t0x1\n\t0x2\n\n## lost: 2 events (ring full)\n2. malloc(9) = 0x20\n\t0x1\n\t0x3\n\n3. free(0x10)\n\n4. malloc(1) = 0x10\n\n"
	want := "version=2.0, pid=7, filter=compress, \n<1> : memory (x)\n" +
		"3. free(0x10)\n4. malloc(1) = 0x10\n# allocation summary: 2 block(s) with total size 1\n\n" +
		"1. malloc(8) = 0x10\n2. malloc(9) = 0x20\n# allocation summary: 2 block(s) with total size 17\n\t0x1\n\n" +
		"## lost: 2 events (ring full)\n"
	out := postprocText(t, in, "-c", "-b", "1")
	if d := cmp.Diff(strings.Replace(want, "filter=compress, ", "filter=compress, backtrace depth=1, ", 1), out); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	leaks := postprocText(t, out, "-l")
	if want := "2. malloc(9) = 0x20\n\t0x1\n\n4. malloc(1) = 0x10\n\n## lost: 2 events (ring full)\n" +
		"# Resource - memory (x):\n# 2 block(s) leaked with total size of 10 bytes\n"; !strings.HasSuffix(leaks, want) {
		t.Errorf("leaks of groups:\n%s", leaks)
	}
	if got := postprocText(t, postprocText(t, in, "-c")); got != postprocText(t, strings.Replace(in, "## lost: 2 events (ring full)\n", "", 1))+"## lost: 2 events (ring full)\n" {
		t.Errorf("apart again:\n%s", got)
	}
}

// TestPostprocCallAddress: the file shows where code is, and if it is missing the mapping; a
// return address is after its call.
func TestPostprocCallAddress(t *testing.T) {
	in := "version=2.0, pid=7, \n<1> : memory (x)\n: /nonesuch/liba.so => 0x10000-0x20000\n: /nonesuch/b => 0x400000-0x500000\n: /other/liba.so => 0x30000-0x40000\n" +
		"1. f(1) = 0x1\n\t0x10100\n\n2. f(1) = 0x2\n\t0x9\n\t0x10108\n\n3. f(1) = 0x3\n\t0x10101\n\n4. f(1) = 0x4\n\t0x10109\n\n5. f(1) = 0x5\n\t0x400105\n\n6. free(0x1)\n\n"
	for _, tt := range []struct {
		arg    string
		legacy bool
		want   string
	}{
		{"liba.so:100+8", false, "2 3"},
		{"liba.so:100+8", true, "1 3"},
		{"/b:400100+10", false, "5"},
		{"/b:0x100+0x10", true, "5"},
		{"other:0+ffff", false, ""},
	} {
		args := []string{"--call-address", tt.arg}
		if tt.legacy {
			args = append(args, "--legacy")
		}
		for _, l := range []string{"", "-l", "-c"} {
			all := args
			if l != "" {
				all = append(all, l)
			}
			var got []string
			for line := range strings.Lines(body(postprocText(t, in, all...))) {
				if n, _, ok := strings.Cut(line, ". f("); ok {
					got = append(got, n)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%v: calls %q, want %q", all, got, tt.want)
			}
		}
	}
	_, errOut, code := runRtrace(in, "postproc", "--call-address", "libc:1+1")
	if code != cli.Failed || !strings.Contains(errOut, "nothing is mapped from libc") {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
	for _, bad := range []string{"", ":1+1", "a:1", "a:x+1", "a:1+0", "a:ffffffffffffffff+2", "a:1+1+1"} {
		if bad == "" {
			continue // the same as without the flag
		}
		if _, _, code := runRtrace(in, "postproc", "--call-address", bad); code != cli.Usage {
			t.Errorf("%q: exit code %d", bad, code)
		}
	}
}

func TestPostprocIndexFiles(t *testing.T) {
	in := "version=2.0, pid=7, \n1. f(1) = 0x1\n\n2. f(1) = 0x2\n\n8. f(1) = 0x3\n\n16. f(1) = 0x4\n\n"
	calls := func(args ...string) string {
		var got []string
		for line := range strings.Lines(body(postprocText(t, in, args...))) {
			if n, _, ok := strings.Cut(line, ". f("); ok {
				got = append(got, n)
			}
		}
		return strings.Join(got, " ")
	}
	if got := calls("--include", writeFile(t, "16\n 2 \r\n\n2\n999\n")); got != "2 16" {
		t.Errorf("included %s", got)
	}
	if got := calls("--exclude", writeFile(t, "010\n0x10\n")); got != "1 2" {
		t.Errorf("excluded all but %s", got)
	}
	if got := calls("--include", writeFile(t, "")); got != "" {
		t.Errorf("included %s", got)
	}
	list := writeFile(t, "2\n")
	out, errOut, code := runRtrace(in, "postproc", "--exclude", list, "--include", list)
	if code != cli.OK || !strings.Contains(errOut, "no effect") || strings.Count(out, ". f(") != 1 {
		t.Errorf("both: exit code %d, stderr %q:\n%s", code, errOut, out)
	}
	for name, file := range map[string]string{"line 2": writeFile(t, "1\nx\n"), "no such file": "nonesuch", "token too long": writeFile(t, strings.Repeat("1", 1<<17))} {
		if _, errOut, code := runRtrace(in, "postproc", "--include", file); code != cli.Failed || !strings.Contains(errOut, name) {
			t.Errorf("%s: exit code %d, stderr %q", name, code, errOut)
		}
	}
}

// TestPostprocUnmatched: frees whose allocations were left out do not count as unmatched.
func TestPostprocUnmatched(t *testing.T) {
	in := "version=2.0, pid=7, \n1. f(1) = 0x1\n\n2. @1 free(0x1)\n\n3. free(0x9)\n\n"
	for flags, want := range map[string]bool{"-b 1": true, "-c": true, "-l": true, "-a": true, "-R 1": true, "-C 0": false, "-l -C 1": false, "-c -C 0": false} {
		out := postprocText(t, in, strings.Fields(flags)...)
		if strings.Contains(out, "## unmatched frees: 1\n") != want {
			t.Errorf("%s:\n%s", flags, out)
		}
	}
}
