package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// Without dot, the picture that it draws is missing, and nothing else. A folder
// that another process filled meanwhile stays as it is.
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
	// What leaked is what rtrace leaks -r says.
	want, _, _ := runRtrace("", "leaks", "-r", timelineCorpus+"/multi.rtrace")
	if got, err := os.ReadFile(filepath.Join(dir, "leaks.txt")); string(got) != want || err != nil {
		t.Errorf("leaks.txt is\n%s%v; want\n%s", got, err, want)
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
