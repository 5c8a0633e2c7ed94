package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// Without dot, only its picture is missing. A folder that another process filled in the
// meantime stays unchanged.
func TestGraphsWithoutDot(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "out")
	code, out, errOut := try(cli.Streams{}, "graphs", "overview", "-o", dir, timelineCorpus+"/multi.rtrace")
	if code != cli.OK || out != "" || errOut != "rtrace graphs: warning: no callgraph.svg: dot of Graphviz is not installed\n" {
		t.Errorf("exit code %d, %q, %q", code, out, errOut)
	}
	names, err := filepath.Glob(dir + "/*")
	if err != nil || len(names) != 9 {
		t.Errorf("%v, %v", names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
		if filepath.Ext(name) == ".svg" {
			wellFormed(t, []string{name}, data)
		}
	}
	// The leaks are those that rtrace postproc prints for the resource, and the graph is
	// that of rtrace calltree with the flags of the original's script.
	all, _, _ := runRtrace("", "postproc", timelineCorpus+"/multi.rtrace")
	mask := regexp.MustCompile(`(?m)^<([0-9a-f]+)> : memory `).FindStringSubmatch(all)
	if mask == nil {
		t.Fatal("the trace has no memory")
	}
	for name, args := range map[string][]string{
		"leaks.txt": {"postproc", "-R", mask[1], "-l", "-c", "-r", "-s", "size"},
		"callgraph.dot": {
			"calltree", "-l", "-r", "--resource=memory", "--limit=5", "--emph-limit=10", "--show-below-limit=no",
			"--ignore-libc-allocs=yes", "--ignore-glib-internals=yes", "--ignore-qt-internals=yes",
		},
	} {
		want, _, _ := runRtrace("", append(args, timelineCorpus+"/multi.rtrace")...)
		got, err := os.ReadFile(filepath.Join(dir, name))
		if d := cmp.Diff(want, string(got)); d != "" || err != nil || want == "" {
			t.Errorf("%v, %s (-want +got):\n%s", err, name, d)
		}
	}
}

// TestGraphsOfAFunction uses the names of the original's scripts, with their arguments.
func TestGraphsOfAFunction(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "out")
	s := cli.Streams{Out: io.Discard, Err: io.Discard}
	if code := run(t.Context(), s, []string{"rtrace-graphs-function", "main", "0.25", timelineCorpus + "/out/c-leaks-nosep/lcr.txt", "-o", dir}); code != cli.OK {
		t.Errorf("exit code %d", code)
	}
	dot, err := os.ReadFile(filepath.Join(dir, "callgraph.dot"))
	if err != nil || !strings.Contains(string(dot), ">=0.2%") || !strings.Contains(string(dot), "main()") {
		t.Errorf("%v\n%s", err, dot)
	}
	// A missing NAME is reported as such.
	if _, errOut, code := runRtrace("", "graphs", "function", timelineCorpus+"/multi.rtrace"); code != cli.Usage || !strings.Contains(errOut, "multi.rtrace is a file: NAME,") {
		t.Errorf("without a name: exit code %d, %q", code, errOut)
	}
	if code := run(t.Context(), s, []string{"rtrace-graphs-overview", "-o", dir + "2", timelineCorpus + "/multi.rtrace"}); code != cli.OK {
		t.Errorf("exit code %d", code)
	}
	if code := run(t.Context(), s, []string{"rtrace-graphs-function", "main", "little", timelineCorpus + "/multi.rtrace", "-o", dir + "3"}); code != cli.Usage {
		t.Errorf("exit code %d", code)
	}
}

func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := createFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.write("a", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.finish(nil); err == nil || !strings.Contains(err.Error(), "completing the folder "+path) {
		t.Errorf("%v", err)
	}
	names, err := filepath.Glob(filepath.Dir(path) + "/.*")
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
