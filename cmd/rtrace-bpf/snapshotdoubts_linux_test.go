package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
)

// Snapshots of each format have the pauses for --max-rate, and the blocks that are unknown
// since the last one, in their way. A reader of the trace counts as many.
func TestSnapshotPauses(t *testing.T) {
	for format, suffix := range map[string]string{"json": ".json", "pprof": ".pb.gz", "folded": ".folded"} {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "churn", "2")
			r := start(t, child, "-o", "trace", "--max-rate", "1000", "--snapshot", "1h", "--snapshot-format", format)
			child.Go()
			pausedTwice(t, child)
			r.Signal(unix.SIGINT)
			r.ends(cli.Incomplete)
			child.Close()
			child.Succeed()
			trace := filepath.Join(r.dir, "trace")
			m := modelOf(load(t, trace))
			if len(m.unknown) == 0 {
				t.Fatal("no block is unknown")
			}
			var bytes uint64
			for _, size := range m.unknown {
				bytes += size
			}
			pauses, blocks := regexp.MustCompile(`(?m)^(# )?paused: \d+ times, [\d.]+ s in all, without events$`), fmt.Sprintf("unknown: %d blocks of memory, ", len(m.unknown))
			text := snapshots(t, trace, suffix)[0]
			switch format {
			case "json":
				var x struct {
					Pauses    int
					Resources []struct{ Unknown topAmount }
					Notes     []string
				}
				if err := json.Unmarshal(text, &x); err != nil || x.Pauses < 2 || x.Resources[0].Unknown != (topAmount{uint64(len(m.unknown)), bytes}) ||
					!strings.Contains(strings.Join(x.Notes, "\n"), fmt.Sprintf("%d blocks may have been freed in a pause", len(m.unknown))) {
					t.Errorf("%+v, %v; want %d blocks, %d bytes", x, err, len(m.unknown), bytes)
				}
				return
			case "pprof":
				p, err := profile.ParseData(text)
				if err != nil {
					t.Fatal(err)
				}
				text = []byte(strings.Join(p.Comments, "\n"))
			case "folded":
				foldedDoubts(t, text)
			}
			if !pauses.Match(text) || !strings.Contains(string(text), blocks) {
				t.Errorf("%s\nwant %q", text, blocks)
			}
		})
	}
}

// foldedDoubts checks that readers of folded stacks, which take lines that end in a number,
// pass over what makes the figures uncertain, and read the rest.
func foldedDoubts(t *testing.T, text []byte) {
	t.Helper()
	stack := regexp.MustCompile(`^(.*)\s+(\d+(?:\.\d*)?)$`)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); stack.MatchString(line) == strings.HasPrefix(line, "# ") {
			t.Errorf("the line %q", line)
		}
	}
}

// Lost events are in folded stacks and in JSON, too.
func TestSnapshotsLose(t *testing.T) {
	for format, suffix := range map[string]string{"json": ".json", "folded": ".folded"} {
		child := waiting(t, "loop", "1", "200000")
		r := start(t, child, "-o", "trace", "--ring-size", "64k", "--snapshot", "1h", "--snapshot-format", format)
		r.Signal(unix.SIGSTOP)
		child.Go()
		child.Succeed()
		r.Signal(unix.SIGCONT)
		r.ends(cli.Incomplete)
		text := snapshots(t, filepath.Join(r.dir, "trace"), suffix)[0]
		if format == "folded" {
			foldedDoubts(t, text)
			if !strings.Contains(string(text), "# lost: ") {
				t.Errorf("%q", text)
			}
		} else if x := topLines(t, text)[0]; x.Lost == 0 || !strings.Contains(strings.Join(x.Notes, "\n"), "events were lost") {
			t.Errorf("%d lost, notes %q", x.Lost, x.Notes)
		}
	}
}

// With --no-trace there are snapshots only, with the same figures. In a directory, each
// recording has names of its own.
func TestNoTrace(t *testing.T) {
	dir := t.TempDir()
	for n := range 2 {
		child := waiting(t, "phases", "1", "20")
		ready := filepath.Join(t.TempDir(), "ready")
		cmd := command(t, "-p", fmt.Sprint(child.PID), "--ready-file", ready, "--no-trace", "--snapshot", "1h", "--snapshot-format", "json", "-o", dir)
		r := startIn(t, cmd, dir, ready)
		child.Go()
		child.Ready()
		child.Go()
		child.Succeed()
		r.ends(cli.OK)
		path := filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-0.snapshot-0001.json", child.PID))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		allocated, freed, live := loggedAmounts(child.Report())
		if m := topLines(t, text)[0].Resources[0]; m.Allocated != allocated || m.Freed != freed || m.Live != live {
			t.Errorf("%+v\nwant %v allocated, %v freed, %v live", m, allocated, freed, live)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != n+1 {
			t.Errorf("%v, %v", files, err)
		}
		r.says(fmt.Sprintf("writing %s/rtrace-raw-%d-0.snapshot-*.json", dir, child.PID))
	}
}

// Each window has names of its own.
func TestNoTraceWindows(t *testing.T) {
	child := waiting(t, "phases", "1", "20")
	r := start(t, child, "--no-trace", "--snapshot", "1h", "-o", "out/")
	for range 4 { // off, on, off, on
		if got := finish(t, command(t, "toggle", fmt.Sprint(child.PID))); got.code != 0 {
			t.Fatalf("exit code %d\n%s", got.code, got.stderr)
		}
	}
	child.Go()
	child.Ready()
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	found, err := filepath.Glob(filepath.Join(r.dir, "out", "*"))
	if err != nil || len(found) != 3 {
		t.Fatalf("%v, %v, want three", found, err)
	}
	for n, path := range found {
		if want := fmt.Sprintf("rtrace-raw-%d-%d.snapshot-0001.pb.gz", child.PID, n); filepath.Base(path) != want {
			t.Errorf("%s, want %s", path, want)
		}
	}
}

// Mistakes are found before anything is attached, and leave nothing.
func TestNoTraceMistakes(t *testing.T) {
	child := waiting(t, "phases", "1", "20")
	dir := t.TempDir()
	path := filepath.Join(dir, "app")
	if err := os.WriteFile(path+".snapshot-0001.pb.gz", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		code cli.ExitCode
		want string
	}{
		{"--snapshot 1h -o " + path, cli.Failed, "app.snapshot-0001.pb.gz: the file exists; remove it, or name another output"},
		{"--snapshot 1h -o " + dir + "/missing/app", cli.Failed, "the directory is missing; create it first: mkdir -p"},
		{"-o " + path, cli.Usage, "--no-trace goes with --snapshot TIME"},
		{"--snapshot 1h -o -", cli.Usage, "-o - has none"},
		{"--snapshot 1h --format jsonl", cli.Usage, "--format jsonl is about the trace, and --no-trace writes none: leave one of them out"},
		{"--snapshot 1h --max-size 10M", cli.Usage, "--max-size is about the trace"},
		{"--snapshot 1h --pagemap", cli.Usage, "--pagemap is about the trace"},
	} {
		got := finish(t, command(t, append([]string{"-p", fmt.Sprint(child.PID), "--no-trace"}, strings.Fields(test.args)...)...))
		if got.code != int(test.code) || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%s: exit code %d\n%s", test.args, got.code, got.stderr)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	child.Go()
	child.Ready()
	child.Go()
	child.Succeed()
}
