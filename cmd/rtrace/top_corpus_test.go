package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
)

// objectOf runs a command that prints JSON.
func objectOf[T any](t *testing.T, args ...string) (x T) {
	t.Helper()
	out, errOut, code := runRtrace("", args...)
	if code != cli.OK && code != cli.Incomplete {
		t.Fatalf("%v: exit code %d: %s", args, code, errOut)
	}
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return x
}

// identityText returns the key of a group as one text.
func identityText(t *testing.T, g groupIdentity) string {
	t.Helper()
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// traceFiles returns all real traces of the corpus.
func traceFiles(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{spRtraceCorpus + "/*.rtrace", mpatrolReal + "/*.trace"} {
		m, err := filepath.Glob(pattern)
		if err != nil || len(m) == 0 {
			t.Fatal(err, "no corpus")
		}
		files = append(files, m...)
	}
	return files
}

// windows are parts of a trace: all of it, its first and its second half, and a part in the
// middle.
func windows(t *testing.T, file string) [][]string {
	t.Helper()
	calls := objectOf[report](t, "info", "--json", file).Calls
	quarter := func(n uint64) string { return fmt.Sprint(n * calls / 4) }
	return [][]string{nil, {"--to", quarter(2)}, {"--from", quarter(2)}, {"--from", quarter(1), "--to", quarter(3)}}
}

// TestTopLikeLeaks compares live blocks with the result of leaks, which finds them in
// another way, by each key, for the whole and for parts of traces.
func TestTopLikeLeaks(t *testing.T) {
	compared := 0
	for _, file := range traceFiles(t) {
		for _, window := range windows(t, file) {
			for _, key := range sites.KeyNames() {
				args := append([]string{"--json", "--by", key, file}, window...)
				want, got := map[string]amount{}, map[string]amount{}
				for _, g := range objectOf[leakObject](t, append([]string{"leaks"}, args...)...).Groups {
					want[identityText(t, g.groupIdentity)] = amount{g.Blocks, g.Bytes}
				}
				top := objectOf[topObject](t, append([]string{"top"}, args...)...)
				var sum topFigures
				for _, g := range top.Groups {
					if g.Live.Blocks > 0 {
						got[identityText(t, g.groupIdentity)] = g.Live
					}
					for _, x := range [...]struct{ to, add *amount }{
						{&sum.Allocated, &g.Allocated}, {&sum.Temporary, &g.Temporary}, {&sum.Live, &g.Live}, {&sum.AtPeak, &g.AtPeak},
					} {
						x.to.Blocks += x.add.Blocks
						x.to.Bytes += x.add.Bytes
					}
				}
				compared += len(want)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%v (-leaks +top):\n%s", args, d)
				}
				if sum.Peak = top.Total.Peak; sum != top.Total {
					t.Errorf("%v: the groups have %+v, all have %+v", args, sum, top.Total)
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d groups were compared", compared)
	}
}

// TestTopLikeInfo compares sums with those of info, which counts by resource.
func TestTopLikeInfo(t *testing.T) {
	peaks := 0
	for _, file := range traceFiles(t) {
		for _, res := range objectOf[report](t, "info", "--json", file).Resources {
			if res.Type != memoryType {
				continue
			}
			top := objectOf[topObject](t, "top", "--json", file)
			if got, want := top.Total.AtPeak, res.Peak; got != want {
				t.Errorf("%s: at the peak %v, info has %v", file, got, want)
				continue
			}
			peaks++
		}
	}
	if peaks < 10 {
		t.Errorf("only %d peaks were compared", peaks)
	}
}

// TestDiffLikeLeaks compares the growth between two moments with the leaks at each of them.
func TestDiffLikeLeaks(t *testing.T) {
	compared := 0
	for _, file := range traceFiles(t) {
		calls := objectOf[report](t, "info", "--json", file).Calls
		from, to := fmt.Sprint(calls/3), fmt.Sprint(2*calls/3)
		want := map[uint64]diffFigures{}
		at := func(moment string, set func(*diffFigures, amount)) {
			for _, g := range objectOf[leakObject](t, "leaks", "--json", "--by", "size", "--to", moment, file).Groups {
				x := want[*g.Size]
				set(&x, amount{g.Blocks, g.Bytes})
				want[*g.Size] = x
			}
		}
		at(from, func(x *diffFigures, a amount) { x.Before = a })
		at(to, func(x *diffFigures, a amount) { x.After = a })
		for size, x := range want {
			if x.Blocks, x.Bytes = int64(x.After.Blocks-x.Before.Blocks), int64(x.After.Bytes-x.Before.Bytes); x.Blocks == 0 {
				delete(want, size)
			} else {
				want[size] = x
			}
		}
		got := map[uint64]diffFigures{}
		for _, g := range objectOf[diffObject](t, "diff", "--json", "--by", "size", "--from", from, "--to", to, file).Groups {
			got[*g.Size] = g.diffFigures
		}
		compared += len(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-leaks +diff):\n%s", file, d)
		}
	}
	if compared < 50 {
		t.Errorf("only %d groups were compared", compared)
	}
}
