package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
)

// leaksOf runs rtrace leaks --json.
func leaksOf(t *testing.T, file string, args ...string) leakObject {
	t.Helper()
	out, errOut, code := runRtrace("", append([]string{"leaks", "--json", file}, args...)...)
	if code != cli.OK && code != cli.Incomplete {
		t.Fatalf("leaks %s %v: exit code %d: %s", file, args, code, errOut)
	}
	var x leakObject
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

var summaryLines = regexp.MustCompile(`(?m)^# Resource - (\S+) \(.*\):\n# (\d+) block\(s\) leaked with total size of (\d+) bytes$`)

// TestLeaksLikePostproc compares with the summary of postproc -l, which postproc's own tests
// compare with the real tool's output. There a block whose address was allocated again is
// still a leak.
func TestLeaksLikePostproc(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(spRtraceCorpus, "*.rtrace"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no corpus")
	}
	leaking, twice := 0, uint64(0)
	for _, file := range files {
		summary, errOut, code := runRtrace("", "postproc", "-l", "-q", file)
		if code != cli.OK {
			t.Fatalf("postproc %s: %d, %s", file, code, errOut)
		}
		want := map[string]amount{}
		for _, m := range summaryLines.FindAllStringSubmatch(summary, -1) {
			var a amount
			if _, err := fmt.Sscan(m[2], &a.Blocks); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscan(m[3], &a.Bytes); err != nil {
				t.Fatal(err)
			}
			// Some traces have a type twice.
			want[m[1]] = amount{want[m[1]].Blocks + a.Blocks, want[m[1]].Bytes + a.Bytes}
		}
		if len(want) == 0 {
			t.Errorf("%s: postproc -l printed no summary", file)
		}
		for kind, sum := range want {
			if sum.Blocks > 0 {
				leaking++
			}
			for _, key := range sites.KeyNames() {
				x := leaksOf(t, file, "--resource", kind, "--by", key)
				twice += x.Replaced.Blocks
				sum := amount{sum.Blocks - x.Replaced.Blocks, sum.Bytes - x.Replaced.Bytes}
				if got := (amount{x.Blocks, x.Bytes}); got != sum || x.All != sum {
					t.Errorf("%s by %s: %s: %v, want %v", filepath.Base(file), key, kind, got, sum)
				}
				var groups amount
				for _, g := range x.Groups {
					groups.Blocks += g.Blocks
					groups.Bytes += g.Bytes
				}
				if groups != sum {
					t.Errorf("%s by %s: %s: groups have %v, want %v", filepath.Base(file), key, kind, groups, sum)
				}
			}
		}
	}
	if leaking < 10 || twice == 0 {
		t.Errorf("only %d resources leaked anything, %d addresses came again", leaking, twice)
	}
}

// TestProfileOfJSONL: a trace as JSON lines has the same leaks and profile.
func TestProfileOfJSONL(t *testing.T) {
	var files []string
	for _, pattern := range []string{spRtraceCorpus + "/*.rtrace", spRtraceCorpus + "/synthetic/*.rtrace", mpatrolReal + "/*.trace"} {
		m, err := filepath.Glob(pattern)
		if err != nil || len(m) == 0 {
			t.Fatal(err, "no corpus")
		}
		files = append(files, m...)
	}
	for _, file := range files {
		lines, errOut, code := runRtrace("", "convert", "-f", "jsonl", file)
		if code != cli.OK {
			t.Logf("%s is not a whole trace: %s", file, errOut)
			continue
		}
		for _, args := range [][]string{{"leaks", "--blocks", "--json"}, {"leaks", "--by", "thread"}, {"mprof", "-v", "-n", "0"}} {
			want, _, _ := runRtrace("", append(args, file)...)
			got, errOut, code := runRtrace(lines, args...)
			if d := cmp.Diff(want, got); d != "" || code != cli.OK {
				t.Errorf("%v %s: exit code %d, %s (-file +jsonl):\n%s", args, file, code, errOut, d)
			}
		}
	}
}

const mpatrolReal = "../../testdata/corpus/mpatrol/real"

// TestLeaksLikeMptrace compares with the blocks that the real mptrace counts as unfreed.
func TestLeaksLikeMptrace(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(mpatrolReal, "*.stats.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no corpus")
	}
	unfreed := regexp.MustCompile(`(?m)^unfreed: +(\d+) \((\d+) bytes?\)$`)
	compared := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := unfreed.FindStringSubmatch(string(text))
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if m == nil {
			t.Logf("%s: the real tool printed no statistics", name)
			continue
		}
		if name == "fork" || name == "forkcheck-parent" {
			continue // the real tool reads the first of two traces
		}
		compared++
		x := leaksOf(t, filepath.Join(mpatrolReal, name+".trace"))
		if got := fmt.Sprint(x.Blocks, x.Bytes); got != m[1]+" "+m[2] {
			t.Errorf("%s: %s, want %s %s", name, got, m[1], m[2])
		}
	}
	if compared < 5 {
		t.Errorf("only %d traces were compared", compared)
	}
	// One trace is the parent's, the other the child's.
	x := leaksOf(t, filepath.Join(mpatrolReal, "fork.trace"), "--by", "process")
	if len(x.Groups) != 2 || x.Groups[0].Bytes != 217 || x.Groups[1].Bytes != 100 || x.Groups[1].PID != -1 {
		t.Errorf("fork: %+v", x.Groups)
	}
}

// TestLeaksLikeMleak compares blocks with those that the real mleak lists for the log of the
// same run. mleak does not know realloc, so it lists the block that realloc(p, 0) freed.
func TestLeaksLikeMleak(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(mpatrolReal, "basic.mleak.txt"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[uint64]uint64{}
	for _, m := range regexp.MustCompile(`\((\d+) bytes?\) \{\w+:(\d+):0\}`).FindAllStringSubmatch(string(text), -1) {
		var size, index uint64
		if _, err := fmt.Sscan(m[1]+" "+m[2], &size, &index); err != nil {
			t.Fatal(err)
		}
		theirs[index] = size
	}
	ours := map[uint64]uint64{}
	for _, g := range leaksOf(t, filepath.Join(mpatrolReal, "basic.trace"), "--blocks").Groups {
		for _, b := range g.List {
			ours[b.Index] = b.Size
		}
	}
	freed := uint64(52)
	if theirs[freed] != 60 {
		t.Fatalf("mleak has %v", theirs)
	}
	delete(theirs, freed)
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("blocks by index (-mleak +got):\n%s", d)
	}
}
