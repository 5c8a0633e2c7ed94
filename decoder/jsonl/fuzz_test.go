package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/decoder/jsonl"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// FuzzDecode reads any input. Every error is a SyntaxError at an offset within the
// input; records that were read are written and read again unchanged.
func FuzzDecode(f *testing.F) {
	full := testutil.FullRecord()
	var all []*trace.Record
	for k := range testutil.Payloads {
		r := *full
		r.Kind = k
		all = append(all, &r)
	}
	f.Add(encode(f, all...), false)
	f.Add([]byte(first+`{"kind":"comment","text":"\ud834\udd1e\udc80","x":[{}]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, strict bool) {
		records, err := readAll(jsonl.New(bytes.NewReader(data), jsonl.Options{Strict: strict}))
		if err != nil {
			syntax, ok := errors.AsType[*trace.SyntaxError](err)
			if !ok || syntax.Format != "jsonl" || syntax.Offset < 0 || syntax.Offset > int64(len(data)) {
				t.Fatalf("error %#v", err)
			}
		}
		again := decode(t, encode(t, records...))
		if diff := cmp.Diff(records, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-first +second)\n%s", diff)
		}
	})
}

// FuzzRoundTrip makes records of any input, writes them and reads them back. Every line
// must be valid JSON.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\x0b\x01\x02\x03\x04 some text \xff\x80\xed\xb2\x80 and more"))
	f.Add(bytes.Repeat([]byte{0xff}, 200))
	f.Add(bytes.Repeat([]byte{11, 0, 250}, 99))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := testutil.RandomRecord(data)
		encoded := encode(t, r)
		for line := range bytes.Lines(encoded) {
			if !json.Valid(line) {
				t.Fatalf("not JSON: %q", line)
			}
		}
		got := decode(t, encoded)
		if len(got) != 1 {
			t.Fatalf("%d records from %q", len(got), encoded)
		}
		if diff := cmp.Diff(r, got[0], cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}
