package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/frametext"
)

// resolvedFrame is a frame with its text.
var resolvedFrame = regexp.MustCompile(`(?m)^(\t0x[0-9a-f]+) (.*)$`)

// frameForms are the texts that a frame may have: docs/symbols.md.
var frameForms = regexp.MustCompile(`^(in \?\?|from \S+|\S.*\S (at \S+:[0-9]+|from \S+)( \(inlined by\) \S.*\S (at \S+:[0-9]+|from \S+))*)$`)

// TestResolveCorpus: everything except the texts of frames is as in the original resolver's
// output, for all samples. Without any files to read, the modules are those of the original.
func TestResolveCorpus(t *testing.T) {
	root := os.Getenv("RTRACE_CORPUS")
	if root == "" {
		root = spRtraceCorpus
		t.Log("RTRACE_CORPUS does not name the whole corpus: only what is in the project is compared")
	} else {
		root = filepath.Join(root, "sp-rtrace")
	}
	var all []string
	for _, pattern := range []string{"out/*/lc-resolve-*.txt", "synthetic/*.lc-resolve-default.txt"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		all = append(all, names...)
	}
	empty := t.TempDir()
	for _, name := range all {
		input := regexp.MustCompile(`lc-resolve-[a-z]*\.txt$`).ReplaceAllString(name, "lc.txt")
		want := readFile(t, name)
		for _, way := range []struct {
			name, stdin string
			args        []string
		}{
			{"file", "", []string{"-i", input}},
			{"pipe", readFile(t, input), nil},
			{"pipe elf", readFile(t, input), []string{"-t", "bfd", "-telf", "--mode=multi-pass"}},
			{"its own", want, nil},
		} {
			args := append([]string{"resolve", "-q", "--root", empty}, way.args...)
			got, errOut, code := runRtrace(way.stdin, args...)
			if code != cli.OK || errOut != "" {
				t.Errorf("%s %s: exit code %d, %q", name, way.name, code, errOut)
			}
			if d := cmp.Diff(resolvedFrame.ReplaceAllString(want, "$1"), resolvedFrame.ReplaceAllString(got, "$1")); d != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, way.name, d)
				continue
			}
			ours, theirs := resolvedFrame.FindAllStringSubmatch(got, -1), resolvedFrame.FindAllStringSubmatch(want, -1)
			for i := range theirs {
				checkModule(t, name+" "+way.name, ours[i][2], theirs[i][2], way.name == "its own")
			}
		}
	}
}

// checkModule compares the texts of a frame whose file is missing; the original had all
// files.
func checkModule(t *testing.T, where, ours, theirs string, replaces bool) {
	t.Helper()
	if ours != theirs && !frameForms.MatchString(ours) {
		t.Errorf("%s: a frame is %q", where, ours)
	}
	was := frametext.Parse(theirs)
	switch is := frametext.Parse(ours); {
	case replaces && was.Function != "":
		if ours != theirs { // no better text is known
			t.Errorf("%s: %q became %q", where, theirs, ours)
		}
	case (ours == frametext.Unknown) != (theirs == frametext.Unknown), was.Module != "" && is.Module != was.Module, is.Function != "":
		t.Errorf("%s: a frame is %q, the original says %q", where, ours, theirs)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestResolveRealTraces: the frames of the traced programs have the names and lines that the
// original finds where it can: linked without separate code, or with mappings that begin at
// the load base. It cannot use the real mappings of today's programs.
func TestResolveRealTraces(t *testing.T) {
	root := filepath.Join(spRtraceCorpus, "root")
	for _, tt := range []struct{ input, want string }{
		{"out/c-leaks/lc.txt", "synthetic/c-leaks-rebased.lc-resolve-default.txt"},
		{"synthetic/c-leaks-rebased.lc.txt", "synthetic/c-leaks-rebased.lc-resolve-default.txt"},
		{"out/c-leaks-nosep/lc.txt", "out/c-leaks-nosep/lc-resolve-bfd.txt"},
	} {
		got, _, code := runRtrace("", "resolve", "-q", "--root="+root, filepath.Join(spRtraceCorpus, tt.input))
		if code != cli.OK {
			t.Errorf("%s: exit code %d", tt.input, code)
		}
		ours, theirs := resolvedFrame.FindAllStringSubmatch(got, -1), resolvedFrame.FindAllStringSubmatch(corpusText(t, tt.want), -1)
		if len(ours) != len(theirs) {
			t.Fatalf("%s: %d frames, want %d", tt.input, len(ours), len(theirs))
		}
		named := 0
		for i := range theirs {
			if strings.Contains(theirs[i][2], " at leak.c:") || strings.HasSuffix(theirs[i][2], " from /opt/demo/"+filepath.Base(filepath.Dir(tt.input))) {
				named++
				if ours[i][2] != theirs[i][2] {
					t.Errorf("%s: %s is %q, the original says %q", tt.input, theirs[i][1], ours[i][2], theirs[i][2])
				}
			}
		}
		if named < 15 {
			t.Errorf("%s: only %d frames of the program", tt.input, named)
		}
	}
	// The binary trace, as file and as pipe, with late mappings: the same frames.
	binary := filepath.Join(spRtraceCorpus, "c-leaks.rtrace")
	fromFile, _, _ := runRtrace("", "resolve", "-q", "--root="+root, binary)
	fromPipe, _, code := runRtrace(readFile(t, binary), "resolve", "-q", "--root="+root)
	if d := cmp.Diff(fromFile, fromPipe); d != "" || code != cli.OK || !strings.Contains(fromFile, " alloc_a() at leak.c:5\n") {
		t.Errorf("exit code %d (-file +pipe):\n%s", code, d)
	}
	cut, errOut, code := runRtrace(readFile(t, binary)[:2500], "resolve", "-q", "--root="+root)
	if code != cli.Incomplete || !strings.Contains(cut, " alloc_a() at leak.c:5\n") || !strings.Contains(errOut, "is cut") {
		t.Errorf("cut: exit code %d, %q\n%s", code, errOut, cut)
	}
}
