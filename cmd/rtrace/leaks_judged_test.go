package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/report/verdict"
	"rtrace-bpf/internal/testutil/mixes"
	"rtrace-bpf/trace"
)

// judged is what is compared of a suspect.
type judged struct {
	Verdict verdict.Object
	Sites   int // call sites, if there are several
}

// engineSuspects returns the suspects of an engine that takes all records of a trace.
func engineSuspects(t *testing.T, text string) (out []judged) {
	t.Helper()
	in, err := decoder.Open(strings.NewReader(text), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := aggregate.NewReader(filter.NewJoinMoves(in))
	var r trace.Record
	for e.ReadRecord(&r) == nil { // some are cut; what comes before counts
	}
	if !e.Judges(aggregate.Memory) {
		return nil
	}
	for _, s := range e.Suspects(aggregate.Memory) {
		out = append(out, judged{*verdict.ObjectOf(&s.Trend), len(s.Parts)})
	}
	return out
}

// TestJudgedEqual: the suspects of leaks are those of the engine that serves live views, digit
// for digit, although leaks passes only the calls of one type of resource to its engine.
func TestJudgedEqual(t *testing.T) {
	inputs := map[string]string{}
	files, err := filepath.Glob(filepath.Join(spRtraceCorpus, "*.rtrace"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no corpus")
	}
	for _, file := range files {
		if text, _, code := runRtrace("", "convert", "-f", "jsonl", file); code == 0 {
			inputs[file] = text
		}
	}
	text := func(records func(func(*trace.Record))) string {
		var out strings.Builder
		w := jsonl.New(&out)
		records(func(r *trace.Record) {
			if err := w.WriteRecord(r); err != nil {
				t.Fatal(err)
			}
		})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for seed := range uint64(2) {
		_, records := mixes.New(seed)
		inputs[fmt.Sprint("mix ", seed)] = text(records)
		_, records = mixes.NewOperations(seed)
		inputs[fmt.Sprint("operations ", seed)] = text(records)
	}
	inputs["growing"] = growing()
	suspects, together := 0, 0
	for name, input := range inputs {
		want := engineSuspects(t, input)
		out, errOut, _ := runRtrace(input, "leaks", "--json", "--by", "stack")
		var x leakObject
		if err := json.Unmarshal([]byte(out), &x); err != nil {
			t.Fatalf("%s: %v: %s", name, err, errOut)
		}
		var got []judged
		for i := range x.Suspects {
			got = append(got, judged{*x.Suspects[i].Object, x.Suspects[i].Sites})
			if x.Suspects[i].Sites > 0 {
				together++
			}
		}
		suspects += len(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-engine +leaks):\n%s", name, d)
		}
	}
	t.Logf("%d traces, %d suspects, %d of several call sites", len(inputs), suspects, together)
	if suspects < 3 || together == 0 {
		t.Errorf("only %d suspects, %d of several call sites, were compared", suspects, together)
	}
}
