package encoder_test

import (
	"bytes"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/trace"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i, f := range encoder.Formats() {
		if f.Name == "" || f.Desc == "" || seen[f.Name] || seen["."+f.Suffix] {
			t.Errorf("row %d: %+v", i, f)
		}
		seen[f.Name], seen["."+f.Suffix] = true, true
		if (f.Suffix == "") != (f.Name == encoder.Default) || f.Suffix != "" && !strings.HasPrefix(f.Suffix, ".") {
			t.Errorf("%s: suffix %q", f.Name, f.Suffix)
		}
		if got := encoder.Suffix(f.Name); got != f.Suffix {
			t.Errorf("%s: Suffix %q", f.Name, got)
		}
		if got, err := encoder.Lookup(f.Name); err != nil || got.Name != f.Name {
			t.Errorf("%s: Lookup %v, %v", f.Name, got, err)
		}
	}
	if got, err := encoder.Lookup(""); err != nil || got.Name != encoder.Default {
		t.Errorf("default: %v, %v", got, err)
	}
	encoder.Formats()[0].Name = "changed"
	if encoder.Formats()[0].Name != encoder.Default {
		t.Error("the table is not the caller's")
	}
}

func TestUnknown(t *testing.T) {
	if _, err := encoder.New("mp3", new(bytes.Buffer), encoder.Options{}); err == nil || !strings.Contains(err.Error(), encoder.Names()) {
		t.Errorf("%v", err)
	}
	if _, err := encoder.New("sprtrace", new(bytes.Buffer), encoder.Options{SprtraceDialect: "klingon"}); err == nil {
		t.Error("an unknown dialect is taken")
	}
	if got := encoder.Suffix("mp3"); got != "" {
		t.Errorf("suffix %q", got)
	}
}

// Positions reports as many calls as a decoder of the format delivers.
func TestPositions(t *testing.T) {
	records := []*trace.Record{
		{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic}},
		{Kind: trace.KindProcess, PID: 3, Process: trace.Process{Name: "x", WallTime: 1e18}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "blocks"}},
	}
	for i, op := range []trace.Op{trace.OpAlloc, trace.OpMove, trace.OpFree, trace.OpMove, trace.OpNone} {
		records = append(records, &trace.Record{Kind: trace.KindCall, Time: 1e9, Call: trace.Call{
			Seq: uint64(i + 1), Op: op, Function: "f", Resource: 1, ID: 16, OldID: 32, Size: 4,
		}})
	}
	records = append(records, &trace.Record{Kind: trace.KindLost}, &trace.Record{Kind: trace.KindEnd})
	for _, f := range encoder.Formats() {
		for _, dialect := range []string{"wire", "document"} {
			var out bytes.Buffer
			w, err := encoder.New(f.Name, &out, encoder.Options{SprtraceDialect: dialect})
			if err != nil {
				t.Fatal(err)
			}
			positions, along, want := encoder.Positions(f.Name), encoder.PositionsOf(f.Name, w), 0
			for i, r := range records {
				n := positions(r)
				want += n
				if err := w.WriteRecord(r); err != nil {
					t.Fatal(err)
				}
				if got := along(r); got != n {
					t.Errorf("%s: record %d has %d positions, along with its writing %d", f.Name, i, n, got)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			in, err := decoder.Open(&out, decoder.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all, err := trace.Load(in)
			if err != nil || in.Format != f.Name {
				t.Errorf("%s: read as %s, %v", f.Name, in.Format, err)
			}
			got := 0
			for _, r := range all {
				if r.Kind == trace.KindCall {
					got++
				}
			}
			if got != want || want < 4 { // some formats have no place for OpNone
				t.Errorf("%s: %d calls are delivered, %d positions counted", f.Name, got, want)
			}
		}
	}
}
