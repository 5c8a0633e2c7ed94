package sidefile_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

func TestRefused(t *testing.T) {
	good := write(t, one, richTrace()...)
	for _, tt := range []struct {
		name   string
		side   []byte
		change func(process, header *trace.Record)
		warn   string
	}{
		{"other pid", good, func(p, _ *trace.Record) { p.PID = 8 }, "about process 7 and the trace about 8"},
		{"other start", good, func(p, _ *trace.Record) { p.Process.WallTime += 2e9 }, "began at another time"},
		{"filtered", good, func(_, h *trace.Record) { h.Header.Filter = "resolve|leaks" }, "was filtered"},
	} {
		main := poor(richTrace())
		if tt.change != nil {
			tt.change(main[1], main[0])
		}
		var warnings []string
		got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(tt.side), func(err error) { warnings = append(warnings, err.Error()) }))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(main, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the trace was changed: (-want +got)\n%s", tt.name, diff)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "is not used") || !strings.Contains(warnings[0], tt.warn) {
			t.Errorf("%s: warnings %q, want one with %q", tt.name, warnings, tt.warn)
		}
	}
}

func TestStartAsFormatsKeepIt(t *testing.T) {
	side := write(t, one, richTrace()...)
	for name, wall := range map[string]int64{
		"whole": start, "micro": start - start%1_000, "milli": start - start%1_000_000, "second": start - start%1_000_000_000,
		"zone": start - start%1_000_000_000 + 3600*1_000_000_000, "unknown": 0,
	} {
		main := poor(richTrace())
		main[1].Process.WallTime = wall
		got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(side), must(t)))
		if err != nil || len(got) != len(richTrace()) || got[1].Process.WallTime != start {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
	}
}

// For any end of a side file, the trace itself is complete.
func TestCutAndDamaged(t *testing.T) {
	side := write(t, one, richTrace()...)
	main := poor(richTrace())
	seqs := func(records []*trace.Record) (out []uint64) {
		for _, r := range records {
			if r.Kind == trace.KindCall {
				out = append(out, r.Call.Seq)
			}
		}
		return out
	}
	for n := range side {
		for _, data := range [][]byte{side[:n], append(append(bytes.Clone(side[:n]), '#'), side[n+1:]...)} {
			got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(data), nil))
			if err != nil {
				t.Fatalf("%d: %v", n, err)
			}
			if diff := cmp.Diff(seqs(main), seqs(got)); diff != "" {
				t.Fatalf("%d: %s", n, diff)
			}
		}
	}
}

func TestCutTrace(t *testing.T) {
	want := richTrace()
	side := write(t, one, want...)
	broken := &trace.SyntaxError{Format: "poor", Offset: 3, Err: trace.ErrTruncated}
	main := poor(want)
	for n := range main {
		r := sidefile.Overlay(&list{main[:n], broken}, bytes.NewReader(side), must(t))
		got, err := readAll(r)
		if !errors.Is(err, trace.ErrTruncated) {
			t.Fatalf("cut after %d: %v", n, err)
		}
		if err2 := r.ReadRecord(new(trace.Record)); err2 != err {
			t.Errorf("cut after %d: then %v", n, err2)
		}
		if len(got) > 0 && got[len(got)-1].Kind == trace.KindEnd && n < len(main) {
			t.Errorf("cut after %d: it has an end", n)
		}
	}
}

// Errors in a side file are part of the verdict.
func TestVerdictOfDamaged(t *testing.T) {
	const first = `{"format":"rtrace-side","version":1}` + "\n"
	for _, tt := range []struct{ side, why string }{
		{"", "it is empty"},
		{"hello\n", "instead of '{'"},
		{`{"format":"rtrace-jsonl","version":1}` + "\n", "does not contain"},
		{`{"format":"rtrace-side","version":2}` + "\n", "version 2 is not supported"},
		{first, "has no end"},
		{first + `{"from":0,"to":4}` + "\n" + `{"from":3,"to":5}` + "\n", "out of order"},
		{first + `{"from":4,"to":3}` + "\n", "out of order"},
		{first + `{"at":4,"kind":"thread"}` + "\n" + `{"at":3,"kind":"thread"}` + "\n", "out of order"},
		{first + `{"at":4,"kind":"call"}` + "\n", "holds no call"},
		{first + `{"at":4,"kind":"nobody"}` + "\n", "not supported"},
		{first + `{"from":0,"to":4,"tid":[1]}` + "\n", "without a second"},
		{first + `{"from":0,"to":4,"stack":["good",1]}` + "\n", "unknown quality"},
		{first + `{"from":0,"to":4,"tid":[1,2,3,4]` + "\n", "line ends inside a value"},
	} {
		main := poor(richTrace())
		o := sidefile.Overlay(&list{records: main}, strings.NewReader(tt.side), must(t))
		got, err := readAll(o)
		if err != nil || len(got) < len(main) {
			t.Errorf("%s: %d records, %v", tt.side, len(got), err)
		}
		if err := o.Verdict(); err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: verdict %v, want %q", tt.side, err, tt.why)
		}
	}
}

func FuzzOverlay(f *testing.F) {
	main := poor(richTrace())
	f.Add(write(f, one, richTrace()...))
	f.Add(write(f, sprtracePositions, richTrace()...))
	f.Add([]byte(`{"format":"rtrace-side","version":1}` + "\n" + `{"from":1,"to":18446744073709551615,"tid":[4,0,5,18446744073709551615],"stack":["failed+bare:",1]}`))
	f.Fuzz(func(t *testing.T, side []byte) {
		got, err := readAll(sidefile.Overlay(&list{records: main}, bytes.NewReader(side), nil))
		if err != nil {
			t.Fatal(err)
		}
		// All of main's records are returned, in order.
		i := 0
		for _, r := range got {
			for i < len(main) && main[i].Kind != trace.KindCall {
				i++
			}
			if r.Kind == trace.KindCall {
				if i == len(main) || r.Call.ID != main[i].Call.ID || r.Time != main[i].Time {
					t.Fatalf("call %d is %+v", i, r)
				}
				i++
			}
		}
		if i != len(main) {
			t.Fatalf("%d of %d records", i, len(main))
		}
	})
}
