package mtrc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/mtrc"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// little is the header of a 64-bit little-endian file of version 1.5.1.
const little = "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29\x00\x00\x00\x00\x00\x00"

// scan returns all events of all streams, and the error at the end of the last one.
func scan(s *mtrc.Scanner) (all []wire.Event, err error) {
	for more := true; more; {
		var e wire.Event
		for err = s.Next(&e); err == nil; err = s.Next(&e) {
			all = append(all, e)
		}
		if !errors.Is(err, io.EOF) {
			return all, err
		}
		if more, err = s.NextStream(); err != nil {
			return all, err
		}
	}
	return all, io.EOF
}

func scanBytes(t testing.TB, data []byte, o mtrc.Options) ([]wire.Event, mtrc.ScanStats, error) {
	t.Helper()
	s, err := mtrc.NewScanner(bytes.NewReader(data), o)
	if err != nil {
		return nil, mtrc.ScanStats{}, err
	}
	all, err := scan(s)
	return all, s.Stats(), err
}

func TestHeaders(t *testing.T) {
	rest := "H\x01\x02MTRC"
	tests := []struct {
		name, head string
		want       wire.Header
		err        error
	}{
		{"64-bit little", little, wire.Header{Words: 8, Version: 10501}, nil},
		{"64-bit big", "MTRC\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x29\x05", wire.Header{Words: 8, Big: true, Version: 10501}, nil},
		{"32-bit little", "MTRC\x01\x00\x00\x00\x05\x29\x00\x00", wire.Header{Words: 4, Version: 10501}, nil},
		{"32-bit big", "MTRC\x00\x00\x00\x01\x00\x00\x29\x05", wire.Header{Words: 4, Big: true, Version: 10501}, nil},
		{"64-bit Windows", "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29\x00\x00", wire.Header{Words: 8, Version: 10501, ShortVersion: true}, nil},
		{"version 0", "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", wire.Header{Words: 8}, nil},
		{"1.5.99", "MTRC\x01\x00\x00\x00\x67\x29\x00\x00", wire.Header{Words: 4, Version: 10599}, nil},
		{"1.6.0", "MTRC\x01\x00\x00\x00\x68\x29\x00\x00", wire.Header{}, trace.ErrUnsupported},
		{"upper half of the version", "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29\x00\x00\x00\x01\x00\x00", wire.Header{}, trace.ErrUnsupported},
		{"order word 2", "MTRC\x02\x00\x00\x00\x05\x29\x00\x00", wire.Header{}, trace.ErrMalformed},
		{"order word 0", "MTRC\x00\x00\x00\x00\x00\x00\x00\x00\x05\x29\x00\x00", wire.Header{}, trace.ErrMalformed},
		{"middle-endian", "MTRC\x00\x01\x00\x00\x05\x29\x00\x00", wire.Header{}, trace.ErrMalformed},
		{"other magic", "MTRD\x01\x00\x00\x00\x05\x29\x00\x00", wire.Header{}, trace.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := mtrc.NewScanner(strings.NewReader(tt.head+rest), mtrc.Options{})
			if tt.err != nil {
				syntax, ok := errors.AsType[*trace.SyntaxError](err)
				if !errors.Is(err, tt.err) || !ok || syntax.Format != "mtrc" || syntax.Offset != 0 {
					t.Errorf("%v, want %v", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Header() != tt.want {
				t.Errorf("%+v, want %+v", s.Header(), tt.want)
			}
			all, err := scan(s)
			if len(all) != 1 || all[0].Kind != wire.Heap || !errors.Is(err, io.EOF) {
				t.Errorf("%d events, %v", len(all), err)
			}
			for n := range len(tt.head) {
				if _, err := mtrc.NewScanner(strings.NewReader(tt.head[:n]), mtrc.Options{}); !errors.Is(err, trace.ErrTruncated) {
					t.Errorf("cut at %d: %v", n, err)
				}
			}
		})
	}
}

// A file that is cut anywhere yields its whole records and an error.
func TestCutAnywhere(t *testing.T) {
	for _, name := range []string{"real/basic", "real/basic32", "handmade/h_200names_cache32", "handmade/h_v10404"} {
		data := contents(t, corpus+"/"+name+".trace")
		s, err := mtrc.NewScanner(bytes.NewReader(data), mtrc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		start := s.Offset()
		var ends []int64
		var want []wire.Event
		var e wire.Event
		for err = s.Next(&e); err == nil; err = s.Next(&e) {
			ends, want = append(ends, s.Offset()), append(want, e)
		}
		for n := start; n < int64(len(data)); n += 1 + n/700 {
			got, _, err := scanBytes(t, data[:n], mtrc.Options{})
			whole := 0
			last := start
			for whole < len(ends) && ends[whole] <= n {
				last = ends[whole]
				whole++
			}
			syntax, ok := errors.AsType[*trace.SyntaxError](err)
			if !ok || !errors.Is(err, trace.ErrTruncated) || syntax.Offset != last {
				t.Fatalf("%s cut at %d: %v, want offset %d", name, n, err, last)
			}
			if !slices.Equal(got, want[:whole]) {
				t.Fatalf("%s cut at %d: %s", name, n, cmp.Diff(want[:whole], got))
			}
		}
	}
}

// The result does not depend on how the input is split into reads.
func TestPieces(t *testing.T) {
	for _, name := range []string{"real/manyfn", "real/fork", "handmade/h_name1023"} {
		data := contents(t, corpus+"/"+name+".trace")
		want, wantStats, _ := scanBytes(t, data, mtrc.Options{})
		for how, r := range map[string]io.Reader{
			"byte by byte": iotest.OneByteReader(bytes.NewReader(data)),
			"halves":       iotest.HalfReader(bytes.NewReader(data)),
			"data and end": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			s, err := mtrc.NewScanner(r, mtrc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := scan(s)
			if !errors.Is(err, io.EOF) || s.Stats() != wantStats || s.Offset() != int64(len(data)) {
				t.Errorf("%s %s: %v, %+v, offset %d", name, how, err, s.Stats(), s.Offset())
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %s: %s", name, how, d)
			}
		}
	}
}

func TestReadErrorsPassThrough(t *testing.T) {
	broken := errors.New("broken disk")
	data := contents(t, corpus+"/real/fork.trace")
	for _, n := range []int{0, 2, 10, 18, 40, 300, 305, len(data)} {
		r := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken))
		s, err := mtrc.NewScanner(r, mtrc.Options{})
		if err == nil {
			_, err = scan(s)
		}
		if _, syntax := errors.AsType[*trace.SyntaxError](err); !errors.Is(err, broken) || syntax {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	s, err := mtrc.NewScanner(io.MultiReader(strings.NewReader(little), emptyReader{}), mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Next(new(wire.Event)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader without an end: %v", err)
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

// A record is delivered as soon as it is complete: the writer of a pipe may wait before
// it continues.
func TestPipe(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	go w.Write([]byte(little)) //nolint:errcheck // the test would hang
	s, err := mtrc.NewScanner(r, mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		go w.Write([]byte("F\x07\x00\x00\x00\x00")) //nolint:errcheck // the test would hang
		var e wire.Event
		if err := s.Next(&e); err != nil || e.Index != 7 {
			t.Fatalf("%+v, %v", e, err)
		}
	}
}

func TestRecords(t *testing.T) {
	long := strings.Repeat("x", 2000)
	name := func(text string) wire.Name { return wire.Name{Text: text, Known: true} }
	tests := []struct {
		name, data string
		want       []wire.Event
		stats      mtrc.ScanStats // without Streams
		err        error
		offset     int64 // of the error, from the end of the header
		strict     error
	}{
		{
			name: "longest number", data: "H\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01MTRC",
			want: []wire.Event{{Kind: 'H', Size: 1<<64 - 1}},
		},
		{name: "number of 65 bits", data: "I\x01\x01H\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02MTRC", want: []wire.Event{{Kind: 'I', Address: 1, Size: 1}}, err: trace.ErrMalformed, offset: 3},
		{name: "number of 11 bytes", data: "H\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x00MTRC", err: trace.ErrMalformed},
		{name: "overlong", data: "H\x85\x80\x80\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00MTRC", want: []wire.Event{{Kind: 'H', Address: 5}}},
		{name: "unknown record", data: "H\x01\x01X\x00MTRC", want: []wire.Event{{Kind: 'H', Address: 1, Size: 1}}, err: trace.ErrMalformed, offset: 3},
		{name: "bad trailer", data: "MTRX", err: trace.ErrMalformed},
		{name: "id used twice, defined again", data: "F\x01\x02\x81f\x00\x81g\x00\x03F\x02\x02\x01\x01\x04F\x03\x02\x81h\x00\x01\x05F\x04\x02\x01\x01\x06MTRC", want: []wire.Event{
			{Kind: 'F', Index: 1, Source: wire.Source{Thread: 2, Function: name("f"), File: name("g"), Line: 3}},
			{Kind: 'F', Index: 2, Source: wire.Source{Thread: 2, Function: name("f"), File: name("g"), Line: 4}},
			{Kind: 'F', Index: 3, Source: wire.Source{Thread: 2, Function: name("h"), File: name("g"), Line: 5}},
			{Kind: 'F', Index: 4, Source: wire.Source{Thread: 2, Function: name("h"), File: name("g"), Line: 6}},
		}},
		{
			name: "undefined ids", data: "F\x01\x00\x05\x7f\x00MTRC", want: []wire.Event{{Kind: 'F', Index: 1}},
			stats: mtrc.ScanStats{Undefined: 2}, strict: trace.ErrMalformed,
		},
		{
			name: "id 0", data: "F\x01\x00\x80f\x00\x80\x00\x00F\x02\x00\x00\x00\x00MTRC",
			want: []wire.Event{
				{Kind: 'F', Index: 1, Source: wire.Source{Function: name("f"), File: name("")}},
				{Kind: 'F', Index: 2},
			},
			stats: mtrc.ScanStats{ZeroIDs: 2}, strict: trace.ErrMalformed,
		},
		{
			name: "id 127", data: "F\x01\x00\xfff\x00\x00\x00F\x02\x00\x7f\x00\x00MTRC",
			want: []wire.Event{
				{Kind: 'F', Index: 1, Source: wire.Source{Function: name("f")}},
				{Kind: 'F', Index: 2, Source: wire.Source{Function: name("f")}},
			},
			stats: mtrc.ScanStats{HighIDs: 1},
		},
		{
			name: "long name", data: "F\x01\x00\x81" + long + "\x00\x00\x00MTRC", want: []wire.Event{{Kind: 'F', Index: 1, Source: wire.Source{Function: name(long)}}},
			stats: mtrc.ScanStats{LongNames: 1},
		},
		{name: "name without end", data: "F\x01\x00\x81" + strings.Repeat("x", 3000) + "\x00\x00\x00MTRC", err: trace.ErrLimit},
		{name: "endless name", data: "F\x01\x00\x81" + strings.Repeat("x", 3000), err: trace.ErrLimit},
		{name: "junk", data: "MTRC12345", stats: mtrc.ScanStats{Junk: 5}, strict: trace.ErrMalformed},
		{name: "junk like a magic", data: "MTRCMTRCMTRCMTRC", stats: mtrc.ScanStats{Junk: 12}, strict: trace.ErrMalformed},
		{name: "magic behind the trailer", data: "MTRCMTRC\x01\x00\x00", err: trace.ErrTruncated, offset: 4},
		{name: "newer stream behind the trailer", data: "MTRCMTRC\x01\x00\x00\x00\x68\x29\x00\x00", err: trace.ErrUnsupported, offset: 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, stats, err := scanBytes(t, []byte(little+tt.data), mtrc.Options{MaxName: 2500})
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if tt.err == nil {
				tt.err = io.EOF
			} else if syntax, ok := errors.AsType[*trace.SyntaxError](err); !ok || syntax.Offset != int64(len(little))+tt.offset {
				t.Errorf("%v is not at %d", err, int64(len(little))+tt.offset)
			}
			if tt.stats.Streams = 1; !errors.Is(err, tt.err) || stats != tt.stats {
				t.Errorf("%v, %+v", err, stats)
			}
			if tt.strict == nil {
				tt.strict = tt.err
			}
			if _, _, err := scanBytes(t, []byte(little+tt.data), mtrc.Options{MaxName: 2500, Strict: true}); !errors.Is(err, tt.strict) {
				t.Errorf("strictly: %v, want %v", err, tt.strict)
			}
		})
	}
}

// Streams follow each other, whole or cut. Each has its own header and names.
func TestStreams(t *testing.T) {
	first, second := "F\x01\x00\x81f\x00\x00\x00", "F\x02\x00\x01\x00\x00"
	other := "MTRC\x00\x00\x00\x01\x00\x00\x29\x05"
	event := func(index uint64, function string) wire.Event {
		return wire.Event{Kind: 'F', Index: index, Source: wire.Source{Function: wire.Name{Text: function, Known: function != ""}}}
	}
	for _, tt := range []struct {
		name, data string
		stats      mtrc.ScanStats
	}{
		{"whole", little + first + "MTRC" + other + second + "MTRC", mtrc.ScanStats{Streams: 2, Undefined: 1}},
		{"cut and whole", little + first + other + second + "MTRC", mtrc.ScanStats{Streams: 2, Undefined: 1, Cut: 1}},
		{"cut and whole and junk", little + first + other + second + "MTRC\x00", mtrc.ScanStats{Streams: 2, Undefined: 1, Cut: 1, Junk: 1}},
	} {
		s, err := mtrc.NewScanner(strings.NewReader(tt.data), mtrc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := scan(s)
		if !errors.Is(err, io.EOF) || s.Stats() != tt.stats || s.Header() != (wire.Header{Words: 4, Big: true, Version: 10501}) {
			t.Errorf("%s: %v, %+v, %+v", tt.name, err, s.Stats(), s.Header())
		}
		if d := cmp.Diff([]wire.Event{event(1, "f"), event(2, "")}, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		_, _, err = scanBytes(t, []byte(tt.data), mtrc.Options{Strict: true})
		if !errors.Is(err, trace.ErrMalformed) {
			t.Errorf("%s strictly: %v", tt.name, err)
		}
	}
	// NextStream skips the rest of a stream.
	s, err := mtrc.NewScanner(strings.NewReader(little+first+first+"MTRC"+other+second+"MTRC"), mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var e wire.Event
	if more, err := s.NextStream(); !more || err != nil || s.Next(&e) != nil || e.Index != 2 {
		t.Errorf("%v, %v, %+v", more, err, e)
	}
}

// A steady stream causes no allocations.
func TestNoAllocation(t *testing.T) {
	data := binary.AppendUvarint([]byte(little), 0)[:len(little)]
	for range 20_000 {
		data = append(data, "A\x80\x01\x90\x80\xc0\x2a\x64\x07\x81main\x00\x82src/main.c\x00\x2aF\x80\x01\x07\x01\x02\x2a"...)
	}
	s, err := mtrc.NewScanner(bytes.NewReader(data), mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var e wire.Event
	if n := testing.AllocsPerRun(30_000, func() {
		if err := s.Next(&e); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
	r, err := mtrc.NewReader(bytes.NewReader(data), mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rec trace.Record
	if n := testing.AllocsPerRun(30_000, func() {
		if err := r.ReadRecord(&rec); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []mtrc.Options{{MaxName: -1}, {MaxName: 1<<30 + 1}} {
		if _, err := mtrc.NewScanner(strings.NewReader(little), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
