package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/decoder/jsonl"
	"rtrace-bpf/trace"
)

// FuzzDecode reads anything: what fails is a SyntaxError inside the input;
// what does not fail is written and read again without a change.
func FuzzDecode(f *testing.F) {
	var full trace.Record
	n := uint64(0)
	fill(reflect.ValueOf(&full).Elem(), &n)
	var all []*trace.Record
	for k := range payloads {
		r := full
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

// FuzzRoundTrip makes records of anything and expects them back; the lines
// must be JSON for others, too.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\x0b\x01\x02\x03\x04 some text \xff\x80\xed\xb2\x80 and more"))
	f.Add(bytes.Repeat([]byte{0xff}, 200))
	f.Add(bytes.Repeat([]byte{11, 0, 250}, 99))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := randomRecord(data)
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

// source turns the bytes of a fuzz input into values.
type source struct{ data []byte }

func (s *source) next() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// number has a random width, so that small and large ones are likely.
func (s *source) number() uint64 {
	v := uint64(0)
	for range s.next() % 9 {
		v = v<<8 | uint64(s.next())
	}
	return v
}

func randomRecord(data []byte) *trace.Record {
	s := &source{data}
	kinds := uint8(trace.KindEnd)
	r := &trace.Record{Kind: trace.Kind(s.next()%kinds + 1)}
	v := reflect.ValueOf(r).Elem()
	for _, name := range []string{"Time", "PID", "TID", "CPU", payloads[r.Kind]} {
		if name != "" {
			s.set(v.FieldByName(name))
		}
	}
	if n := len(r.Call.Stack.Frames); len(r.Call.Stack.Names) > 0 {
		names := make([]string, n)
		copy(names, r.Call.Stack.Names)
		r.Call.Stack.Names = names
	}
	return r
}

func (s *source) set(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			s.set(field)
		}
	case reflect.Slice:
		n := int(s.next() % 8)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			s.set(v.Index(i))
		}
	case reflect.String:
		n := min(int(s.next()%32), len(s.data))
		v.SetString(string(s.data[:n]))
		s.data = s.data[n:]
	case reflect.Bool:
		v.SetBool(s.next()%2 == 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(s.number() & (1<<v.Type().Bits() - 1))
	case reflect.Int:
		v.SetInt(int64(int32(s.number()))) // held to 32 bits by the format
	case reflect.Int32, reflect.Int64:
		shift := 64 - v.Type().Bits()
		v.SetInt(int64(s.number()) << shift >> shift)
	}
}
