package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil/mixes"
	"rtrace-bpf/trace"
)

// growing writes the trace of a program that builds a table of 400 blocks, has a full cache,
// and leaks two blocks of 100 bytes a second at a line of its own, next to another line of
// the same function that frees its blocks at once.
func growing() string {
	c := newCalls()
	at := func(ms uint64, function string) uint64 {
		c.n = ms
		return c.alloc(function)
	}
	for ms := range uint64(400) {
		at(ms, "table")
	}
	var cache []uint64
	for ms := uint64(500); ms < 60_000; ms += 100 {
		cache = append(cache, at(ms, "cache"))
		if len(cache) > 150 {
			c.free(cache[0])
			cache = cache[1:]
		}
		c.free(at(ms+20, "work"))
		if ms%500 == 0 {
			at(ms+40, "leak")
		}
	}
	return strings.NewReplacer("table()", "load() at a.c:10", "cache()", "store() at a.c:20", "work()", "serve() at a.c:30", "leak()", "serve() at a.c:31").Replace(c.String())
}

// TestLeaksGrowing: call sites that grow come first and the others are left out, unless they
// are asked for. Two lines of a function are two call sites.
func TestLeaksGrowing(t *testing.T) {
	input := growing()
	run := func(args ...string) string {
		t.Helper()
		out, errOut, code := runRtrace(input, append([]string{"leaks"}, args...)...)
		if code != cli.OK || errOut != "" {
			t.Fatalf("%v: exit code %d: %s", args, code, errOut)
		}
		return out
	}
	const (
		head = "still live at the end: 669 blocks (6690 bytes)\ngrowing steadily: 1 group, printed first\n\n"
		leak = "growing 2 blocks/s, 20 B/s, steady since the start; none of 119 freed"
	)
	for _, tt := range []struct{ name, got, want string }{
		{"text", run(), head + `bytes      %  blocks  line
 1190  17.79     119  ` + leak + `
                      serve at a.c:31

 5500  82.21     550  in 2 other groups, none of which grows steadily; --all prints them
`},
		{"all", run("--all"), head + `bytes      %  blocks  line
 1190  17.79     119  ` + leak + `
                      serve at a.c:31

 4000  59.79     400  level at 400 blocks since the start
                      load at a.c:10

 1500  22.42     150  level at 150 blocks since 00:12
                      store at a.c:20
`},
		{"top", run("--top", "2", "--by", "line"), head + `bytes      %  blocks  line
 1190  17.79     119  ` + leak + `
                      serve at a.c:31

 4000  59.79     400  level at 400 blocks since the start
                      load at a.c:10

 1500  22.42     150  in 1 other group
`},
		{"by size", run("--by", "size"), "still live at the end: 669 blocks (6690 bytes)\n\nbytes       %  blocks  size\n 6690  100.00     669  10 bytes\n"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, tt.got, tt.want)
		}
	}
	var x leakObject
	if err := json.Unmarshal([]byte(run("--json")), &x); err != nil {
		t.Fatal(err)
	}
	if x.Growing != 1 || len(x.Groups) != 3 || x.Groups[0].Trend == nil || x.Groups[0].Trend.Verdict != leak || x.Groups[0].Trend.Growth.Blocks < 1.9 ||
		x.Groups[1].Trend.Growing || x.Groups[1].Trend.Growth != nil || x.Groups[1].Trend.Verdict != "level at 400 blocks since the start" {
		t.Errorf("%+v", x)
	}
}

// TestLeaksNotGrowing: in a recording that is long enough, leaks prints that no call site grows.
func TestLeaksNotGrowing(t *testing.T) {
	c := newCalls()
	for range 100 {
		c.alloc("table")
	}
	c.n = 20_000
	c.free(c.alloc("work"))
	out, _, _ := runRtrace(c.String(), "leaks")
	const want = "still live at the end: 100 blocks (1000 bytes)\nno call site grows steadily (20 s observed)\n\nbytes       %  blocks  line\n 1000  100.00     100  table\n"
	if out != want {
		t.Errorf("%s\nwant:\n%s", out, want)
	}
}

// TestLeaksOfMixes: leaks names the leak of simulated programs first, also by function, in
// which all stacks of a call site come together, and in text and JSON alike.
func TestLeaksOfMixes(t *testing.T) {
	for _, seed := range []uint64{1, 4, 12, 15} {
		m, records := mixes.New(seed)
		file := filepath.Join(t.TempDir(), "trace.jsonl")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		w := jsonl.New(f)
		records(func(r *trace.Record) {
			if err := w.WriteRecord(r); err != nil {
				t.Fatal(err)
			}
		})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for _, by := range []string{"stack", "function"} {
			x := leaksOf(t, file, "--by", by)
			if m.Leak == nil {
				if x.Growing != 0 {
					t.Errorf("seed %d by %s: %d groups grow: %+v", seed, by, x.Growing, x.Groups[0])
				}
				continue
			}
			if x.Growing == 0 || x.Groups[0].Trend == nil || fmt.Sprintf("0x%016x", m.Leak.Site) != x.Groups[0].Frames[0].Address {
				t.Errorf("seed %d by %s: %d groups grow, first %+v, want %#x", seed, by, x.Growing, x.Groups[0], m.Leak.Site)
			}
		}
	}
}

// TestReportGrowing: the page has the verdicts of leaks, the suspect before everything else.
func TestReportGrowing(t *testing.T) {
	input := growing()
	page, errOut, code := runRtrace(input, "report", "--resolve=false", "-o", "-")
	if code != cli.OK || errOut != "" {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	last := 0
	for _, text := range []string{
		"<h2 id=\"verdict-title\">Suspects</h2>", ">serve</bdi> <bdi class=\"muted\">at a.c:31</bdi>", "Growing 2 blocks/s, 20 B/s, steady since the start; none of 119 freed.",
		"Other call sites with live blocks: 2", "level at 400 blocks since the start", ">load</bdi>", "level at 150 blocks since 00:12", ">store</bdi>", "<dt>Duration</dt>",
	} {
		at := strings.Index(page, text)
		if at < last {
			t.Errorf("%q is at %d of the page, after %d", text, at, last)
		}
		last = at
	}
}
