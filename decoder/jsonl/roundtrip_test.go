package jsonl_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/decoder/jsonl"
	encoder "rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

func encode(t testing.TB, records ...*trace.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w := encoder.New(&out)
	for _, r := range records {
		if err := w.WriteRecord(r); err != nil {
			t.Fatalf("WriteRecord: %v", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return out.Bytes()
}

// readAll is trace.Load with a new record each time, so that unused fields are zero.
func readAll(r trace.Reader) ([]*trace.Record, error) {
	var all []*trace.Record
	for {
		var rec trace.Record
		if err := r.ReadRecord(&rec); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, rec.Clone())
	}
}

func decode(t testing.TB, data []byte) []*trace.Record {
	t.Helper()
	records, err := readAll(jsonl.New(bytes.NewReader(data), jsonl.Options{Strict: true}))
	if err != nil {
		t.Fatalf("reading %s: %v", data, err)
	}
	return records
}

// Every field of every kind survives a round trip. A field that is added to the
// vocabulary but not here fails this test.
func TestEveryField(t *testing.T) {
	full := testutil.FullRecord()
	covered := map[string]bool{"Kind": true, "Time": true, "PID": true, "TID": true, "CPU": true}
	for k := trace.KindHeader; ; k++ {
		if _, ok := trace.ParseKind(k.String()); !ok {
			break
		}
		payload, ok := testutil.Payloads[k]
		if !ok {
			t.Errorf("kind %v is not in the test's table", k)
			continue
		}
		covered[payload] = true

		full.Kind = k
		want := testutil.OfKind(k, full)
		data := encode(t, full)
		got := decode(t, data)
		if len(got) != 1 {
			t.Fatalf("%v: %d records from %s", k, len(got), data)
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", k, diff)
		}
	}
	for field := range reflect.TypeFor[trace.Record]().Fields() {
		if name := field.Name; !covered[name] {
			t.Errorf("trace.Record.%s is in no kind's payload", name)
		}
	}
}

// Reading into a used Record leaves nothing of what it held.
func TestReusedRecord(t *testing.T) {
	used := testutil.FullRecord()
	for k, payload := range testutil.Payloads {
		r := jsonl.New(bytes.NewReader(encode(t, &trace.Record{Kind: k})), jsonl.Options{Strict: true})
		rec := *used
		if err := r.ReadRecord(&rec); err != nil {
			t.Fatal(err)
		}
		if rec.Kind != k || rec.Time != 0 || rec.PID != 0 || rec.TID != 0 || rec.CPU != 0 {
			t.Errorf("%v: got kind %v time %d pid %d tid %d cpu %d", k, rec.Kind, rec.Time, rec.PID, rec.TID, rec.CPU)
		}
		if payload == "" {
			continue
		}
		field := reflect.ValueOf(rec).FieldByName(payload)
		zero := reflect.Zero(field.Type()).Interface()
		if diff := cmp.Diff(zero, field.Interface(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", k, diff)
		}
	}
}

// A reader does not write into slices that another reader put into the record.
func TestSlicesOfOthersAreLeftAlone(t *testing.T) {
	data := encode(t, &trace.Record{Kind: trace.KindCall, Call: trace.Call{Stack: trace.Stack{Frames: []uint64{7}}}})
	others := []uint64{1, 2, 3}
	rec := trace.Record{Call: trace.Call{Stack: trace.Stack{Frames: others}}}
	if err := jsonl.New(bytes.NewReader(data), jsonl.Options{}).ReadRecord(&rec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3}, others); diff != "" {
		t.Error(diff)
	}
}

func call(c trace.Call) *trace.Record {
	return &trace.Record{Kind: trace.KindCall, Time: 5, Call: c}
}

func TestExtremes(t *testing.T) {
	records := []*trace.Record{
		{Kind: trace.KindComment, Comment: "tab\t nl\n cr\r quote\" slash\\ / nul\x00 del\x7f esc\x1b"},
		{Kind: trace.KindComment, Comment: "ä 漢 𝄞 \u2028 \ufffd \uffff"},
		{Kind: trace.KindComment, Comment: "bad \x80 \xff \xc3( \xed\xb2\x80 \xf8\x88 end\xe2\x82"},
		{Kind: trace.KindComment, Comment: `\udc80 <&> \u0041`},
		{Kind: trace.KindProcess, Process: trace.Process{Depth: -1, WallTime: math.MinInt64}},
		{Kind: trace.KindEnd, Time: math.MaxInt64, PID: math.MinInt32, TID: math.MaxInt32, CPU: -1},
		{Kind: trace.KindTracerModule, TracerModule: trace.TracerModule{ID: math.MaxUint32, Major: math.MaxUint16, Minor: math.MaxUint16}},
		call(trace.Call{Seq: math.MaxUint64, Op: trace.OpMove, ID: math.MaxUint64, OldID: 1 << 63, Size: math.MaxUint64, EntryTime: -1}),
		call(trace.Call{Op: 200, Stack: trace.Stack{End: 100}}),
		call(trace.Call{Stack: trace.Stack{Frames: []uint64{0, 1, math.MaxUint64}, Names: []string{"", "a", ""}}}),
		call(trace.Call{Args: []trace.Arg{{}, {Name: "x"}, {Value: "y\n"}, {Name: "x", Value: " "}}}),
		{Kind: trace.KindHeader, Header: trace.Header{Clock: 99}},
		{Kind: trace.KindOpaque, Opaque: trace.Opaque{Format: "sprtrace", ID: 7, Data: []byte{0, 1, 0xfe, 0xff}}},
	}
	data := encode(t, records...)
	if diff := cmp.Diff(records, decode(t, data), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if again := encode(t, decode(t, data)...); !bytes.Equal(data, again) {
		t.Errorf("written again:\n%s\nwant:\n%s", again, data)
	}
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		if bytes.ContainsFunc(line, func(r rune) bool { return r < 0x20 }) {
			t.Errorf("line %d has control characters: %q", i, line)
		}
	}
}

func TestReadsInPieces(t *testing.T) {
	var records []*trace.Record
	for i := range 300 {
		records = append(records, call(trace.Call{Seq: uint64(i), Function: strings.Repeat("f", i*13)}))
	}
	data := encode(t, records...)
	for name, r := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(bytes.NewReader(data)),
		"half":     iotest.HalfReader(bytes.NewReader(data)),
		"data+EOF": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		got, err := readAll(jsonl.New(r, jsonl.Options{}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(records, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// Cut anywhere, a trace yields the records before the cut and an error, unless the cut
// is at the end of a line or of an object.
func TestEveryCut(t *testing.T) {
	records := []*trace.Record{
		call(trace.Call{
			Seq: 12, Op: trace.OpAlloc, Function: "mal\x80\"loc𝄞", ID: 0x1234, Size: 10,
			Stack: trace.Stack{Frames: []uint64{1, 0xffff}, Names: []string{"a", "b"}, FramePointer: true, End: trace.StackComplete},
			Args:  []trace.Arg{{Name: "n", Value: "v"}},
		}),
		{Kind: trace.KindOpaque, Time: -3, Opaque: trace.Opaque{Data: []byte{1, 2}}},
	}
	data := encode(t, records...)
	// The same with an escaped surrogate pair and with the kind at the end.
	data = append(data, `{"time":1,"x":[{"y":-1.5e+7},null,false,"\ud834\udd1e"],"kind":"comment","text":"\ud834\udd1e"}`+"\n"...)
	records = append(records, &trace.Record{Kind: trace.KindComment, Time: 1, Comment: "𝄞"})

	for n := range len(data) + 1 {
		part := data[:n]
		got, err := readAll(jsonl.New(bytes.NewReader(part), jsonl.Options{}))
		whole := bytes.Count(part, []byte("\n")) - 1
		complete := n > 0 && (part[n-1] == '\n' || n < len(data) && data[n] == '\n')
		if complete && part[n-1] != '\n' {
			whole++
		}
		if complete && err != nil {
			t.Errorf("cut at %d: %v", n, err)
		}
		if syntax, ok := errors.AsType[*trace.SyntaxError](err); !complete && (!ok || !errors.Is(err, trace.ErrTruncated) || syntax.Offset != int64(n)) {
			t.Errorf("cut at %d %q: got %v", n, part, err)
		}
		if diff := cmp.Diff(records[:max(whole, 0)], got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("cut at %d: (-want +got)\n%s", n, diff)
		}
	}
}
