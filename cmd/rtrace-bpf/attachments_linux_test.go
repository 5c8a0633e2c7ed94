package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/cmd/internal/renaming"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// attachedTo returns the attachments of a trace, except for its side file, as NAME=PATH.
func attachedTo(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, r := range load(t, path) {
		if r.Kind == trace.KindAttachment && r.Attachment.Name != "side" {
			all = append(all, r.Attachment.Name+"="+r.Attachment.Path)
		}
	}
	return all
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestAttach checks that files are copied next to the trace, under names that no other file
// has, and that the trace names them; rtrace rename keeps both so.
func TestAttach(t *testing.T) {
	testutil.Build(t, "leak") // before the first program starts
	notes := filepath.Join(t.TempDir(), "a note.txt")
	if err := os.WriteFile(notes, []byte(strings.Repeat("hello\n", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"sprtrace", "text", "jsonl"} {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "leak")
			dir := t.TempDir()
			other := filepath.Join(dir, fmt.Sprintf("%d-notes-0", child.PID))
			if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
				t.Fatal(err)
			}
			r := start(t, child, "--format", format, "-o", dir, "--attach", "notes="+notes, "--attach", "os=/proc/sys/kernel/ostype")
			child.Go()
			child.Report()
			r.ends(cli.OK)
			path := filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, encoder.Suffix(format)))
			check := func(path, word string, n int) {
				t.Helper()
				want := []string{fmt.Sprintf("notes=%s-notes-%d", word, n), "os=" + word + "-os-0"}
				if got := attachedTo(t, path); !slices.Equal(got, want) {
					t.Errorf("attachments %q, want %q", got, want)
				}
				if contentOf(t, filepath.Join(dir, fmt.Sprintf("%s-notes-%d", word, n))) != contentOf(t, notes) || contentOf(t, filepath.Join(dir, word+"-os-0")) != "Linux\n" {
					t.Error("a copy differs")
				}
			}
			check(path, fmt.Sprint(child.PID), 1)
			if contentOf(t, other) != "other" {
				t.Error("a file was overwritten")
			}
			plan, err := renaming.NewPlan(dir, fmt.Sprint(child.PID), "demo")
			if err == nil {
				err = plan.Apply(false)
			}
			if err != nil {
				t.Fatal(err)
			}
			check(filepath.Join(dir, "rtrace-raw-demo-0"+encoder.Suffix(format)), "demo", 1)
		})
	}
}

// TestAttachRefused checks that impossible attachments are refused before the process has
// probes, and that no files are left.
func TestAttachRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--attach x":                                       "--attach x: not an attachment; write one as NAME=FILE",
		"--attach x=":                                      "--attach x=: not an attachment",
		"--attach ../x=f":                                  `an attachment cannot be called "../x"`,
		"--attach side=f":                                  "that is the trace's own",
		"--attach a=f --attach a=g":                        "there are two attachments a",
		"--attach a=f -o -":                                "-o - has none: name a file or a directory",
		"--attach a=f -o stdout":                           "-o - has none",
		"--attach a=f --format mtrc":                       "mtrc has no place for the names of files",
		"--attach a=f --format swap":                       "swap has no place",
		"--attach a=f --format nettrace":                   "nettrace has no place",
		"--attach a=f --dotnet --format jsonl":             "--attach does not go with --dotnet alone",
		"--attach " + strings.Repeat("a", 65) + "=" + file: "64 at most",
	} {
		var c config
		if err := c.parse(strings.Fields("-p 1 "+args), settings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	child := waiting(t, "leak")
	fifo, output := filepath.Join(dir, "fifo"), filepath.Join(dir, "output")
	for _, path := range []string{fifo, output} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hold, err := os.OpenFile(output, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	for name, test := range map[string]struct {
		flags []string
		code  cli.ExitCode
		want  string
	}{
		"missing":   {[]string{"--attach", "a=" + file, "--attach", "b=" + filepath.Join(dir, "nothing")}, cli.Failed, "attach b: open "},
		"fifo":      {[]string{"--attach", "a=" + fifo}, cli.Failed, "is not a regular file"},
		"folder":    {[]string{"--attach", "a=" + dir}, cli.Failed, "is not a regular file"},
		"to a pipe": {[]string{"-o", output, "--attach", "a=" + file}, cli.Usage, "is not a regular file: name a file or a directory"},
	} {
		cmd := command(t, append([]string{"-p", fmt.Sprint(child.PID)}, test.flags...)...)
		cmd.Dir = t.TempDir()
		got := finish(t, cmd)
		if got.code != int(test.code) || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.stderr)
		}
		if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
	child.Go()
	child.Report()
}
