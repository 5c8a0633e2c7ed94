package nettrace_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	decoder "rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/trace"
)

// anything makes records of any kind with any values.
type anything struct{ *rand.Rand }

func (a anything) number() uint64 { return a.Uint64() >> a.IntN(64) }

func (a anything) some(n int) bool { return a.IntN(n) == 0 }

// text returns any text: short, odd, not UTF-8, with characters that are escaped.
func (a anything) text() string {
	all := []string{
		"", "malloc", "realloc", "a b", "größer", "漢字", "🙂🙂", "\x00", "a\x00b", "\xff\xfe", "\xed\xb2\x80", "🙂\x80", "\\", "a\\nb\n", "\t\n",
		"\ufffd", "\\\\n", strings.Repeat("long", 600),
	}
	return all[a.IntN(len(all))]
}

// fill sets all fields of a struct.
func (a anything) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[trace.Stack]() {
			v.Set(reflect.ValueOf(a.stack(a.IntN(9))))
			return
		}
		for _, field := range v.Fields() {
			a.fill(field)
		}
	case reflect.String:
		v.SetString(a.text())
	case reflect.Bool:
		v.SetBool(a.some(2))
	case reflect.Int, reflect.Int32, reflect.Int64:
		n := int64(a.number())
		if v.OverflowInt(n) || v.Kind() == reflect.Int {
			n = int64(int32(n))
		}
		v.SetInt(n)
	case reflect.Uint8:
		v.SetUint(a.Uint64N(3))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := a.number()
		if v.OverflowUint(n) {
			n = uint64(uint16(n))
		}
		v.SetUint(n)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(a.text()))
		} else {
			v.Set(reflect.ValueOf([]trace.Arg{{Name: a.text(), Value: a.text()}}))
		}
	}
}

func (a anything) stack(frames int) (s trace.Stack) {
	for range frames {
		s.Frames = append(s.Frames, a.number())
	}
	s.End = trace.StackEnd(a.IntN(5))
	s.FramePointer = a.some(4)
	if a.some(4) {
		s.Reason = a.text()
	}
	if a.some(3) {
		for range s.Frames {
			s.Names = append(s.Names, a.text())
		}
	}
	return s
}

func (a anything) call(stacks []trace.Stack) (c trace.Call) {
	c = trace.Call{Op: trace.Op(a.IntN(4)), Function: a.text(), Resource: uint32(a.IntN(3)), ID: a.number(), Stack: stacks[a.IntN(len(stacks))]}
	for _, set := range []func(){
		func() { c.Seq = a.number() },
		func() { c.OldID = a.number() },
		func() { c.Size = a.number() },
		func() { c.EntryTime = int64(a.number()) },
		func() { c.Context = a.Uint32() },
		func() { c.Index = a.number() },
		func() { c.Thread = a.number() },
		func() { c.Caller.Function = a.text() },
		func() { c.Caller.File, c.Caller.Line = a.text(), a.number() },
		func() { c.Resource = a.Uint32() },
		func() {
			for range 1 + a.IntN(3) {
				c.Args = append(c.Args, trace.Arg{Name: a.text(), Value: a.text()})
			}
		},
	} {
		if a.some(5) {
			set()
		}
	}
	return c
}

// records returns n records. At most the first is a header, with the given pointer
// size.
func (a anything) records(n, pointer int) []trace.Record {
	stacks := []trace.Stack{{}}
	for i := range 60 {
		stacks = append(stacks, a.stack(i%12))
	}
	all := []trace.Record{{Kind: trace.KindHeader, Header: trace.Header{PointerSize: pointer, WallTime: int64(a.number())}}}
	time := int64(1e12)
	for len(all) < n {
		r := trace.Record{TID: a.Int32N(4), CPU: a.Int32N(4)}
		if a.some(10) {
			r.PID, r.TID, r.CPU = a.Int32(), int32(a.Uint32()), a.Int32()
		}
		time += int64(a.IntN(100)) - 20
		if r.Time = time; a.some(20) {
			r.Time = int64(a.number()) / 2
		}
		if r.Kind = trace.Kind(1 + a.IntN(int(trace.KindEnd))); a.some(2) {
			r.Kind = trace.KindCall
		}
		switch r.Kind {
		case trace.KindCall:
			r.Call = a.call(stacks)
		default:
			v := reflect.ValueOf(&r).Elem()
			for i := range v.NumField() {
				name := strings.ToLower(v.Type().Field(i).Name)
				if name == r.Kind.String() || name == "mapping" && r.Kind == trace.KindUnmapping {
					a.fill(v.Field(i))
				}
			}
		}
		if r.Kind == trace.KindOpaque && r.Opaque.Data == nil {
			r.Opaque.Data = []byte{1}
		}
		all = append(all, r)
	}
	return all
}

// Every record is restored whole, whatever is in it.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		a := anything{rand.New(rand.NewPCG(seed, 1))}
		pointer := 4 + 4*a.IntN(2)
		records := a.records(400, pointer)
		for _, opts := range []nettrace.Options{{}, {Version: nettrace.V6}, {View: nettrace.ViewAllocTick}} {
			var out bytes.Buffer
			w, err := nettrace.New(&out, opts)
			if err != nil {
				t.Fatal(err)
			}
			w.SetInterval(3000)
			data, stats := write(t, w, &out, records)
			got := read(t, data)
			checkDump(t, data)
			if stats.CutStrings > 0 {
				t.Fatalf("seed %d: %d texts cut", seed, stats.CutStrings)
			}
			if len(got.records) != len(records) {
				t.Fatalf("seed %d, %+v: %d records, want %d", seed, opts, len(got.records), len(records))
			}
			for i := range records {
				if d := cmp.Diff(&records[i], got.records[i], cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("seed %d, %+v: record %d (-want +got):\n%s", seed, opts, i, d)
				}
			}
			var lost uint64
			for i := range records {
				if records[i].Kind == trace.KindLost {
					lost += min(records[i].Lost.Count, 1<<31-1)
				}
			}
			if got.lost != lost {
				t.Errorf("seed %d, %+v: the numbers skip %d, want %d", seed, opts, got.lost, lost)
			}
		}
	}
}

// Stacks that do not fit into a block of stacks are restored whole, too.
func TestLongStacks(t *testing.T) {
	a := anything{rand.New(rand.NewPCG(1, 2))}
	long := a.stack(20000)
	for i := range long.Frames {
		long.Frames[i] &= 1<<32 - 1
	}
	wide := trace.Stack{Frames: []uint64{1, 1 << 40}, End: trace.StackComplete}
	for _, pointer := range []int{4, 8} {
		records := []trace.Record{{Kind: trace.KindHeader, Header: trace.Header{PointerSize: pointer}}}
		for i, s := range []trace.Stack{long, wide, long} {
			records = append(records, trace.Record{Kind: trace.KindCall, Call: trace.Call{Seq: uint64(i + 1), Stack: s}})
		}
		data, _ := encode(t, records, nettrace.Options{})
		got := read(t, data).records
		for i := range records {
			if d := cmp.Diff(&records[i], got[i], cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%d bytes: record %d differs", pointer, i)
			}
		}
		for frames := range other(t, data).distinct {
			if n := strings.Count(frames, " ") + 1; n > 8190 {
				t.Errorf("%d bytes: a stack of %d frames, which the reference reader does not take", pointer, n)
			}
		}
	}
}

// checkDump checks that Undump restores a stream from its dump, and that the dump has
// its events as fields.
func checkDump(t *testing.T, data []byte) {
	t.Helper()
	var text, again bytes.Buffer
	if err := decoder.Dump(&text, bytes.NewReader(data), decoder.Options{Strict: true}); err != nil {
		t.Fatal(err)
	}
	if err := decoder.Undump(&again, bytes.NewReader(text.Bytes())); err != nil || !bytes.Equal(again.Bytes(), data) {
		t.Errorf("%v, %d bytes of %d", err, again.Len(), len(data))
	}
	for line := range strings.Lines(text.String()) {
		words := strings.Fields(line)
		if raw := strings.Contains(line, " raw="); raw && (words[2] == "EVENT" || words[2] == "STACK" || words[2] == "BLOCK" || words[2] == "TRACE") {
			t.Errorf("%.300s", line)
			return
		}
	}
}
