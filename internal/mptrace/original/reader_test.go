package original_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/mptrace/original"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// header returns the header of a 64-bit little-endian file.
func header(version uint64) []byte {
	b := append([]byte(wire.Magic), 1, 0, 0, 0, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint64(b, version)
}

// file returns a file of version 1.5.1 with the given records.
func file(records ...string) []byte {
	return append(header(wire.Version), strings.Join(records, "")...)
}

// read reads all events.
func read(data []byte, b original.Build) (events []wire.Event, err error) {
	r, err := original.NewReader(bytes.NewReader(data), b)
	if err != nil {
		return nil, err
	}
	for {
		var e wire.Event
		if err := r.Next(&e); err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestEnds(t *testing.T) {
	heap := "H\x01\x02"
	alloc := func(function string) string { return "A\x01\x02\x03\x05" + function + "\x00\x07" }
	le32 := []byte("MTRC\x01\x00\x00\x00\x05\x29\x00\x00")
	be32 := []byte("MTRC\x00\x00\x00\x01\x00\x00\x29\x05")
	for _, tt := range []struct {
		name   string
		data   []byte
		build  original.Build
		events int
		err    error
	}{
		{"empty file", nil, original.AsIs64, 0, original.ReadError},
		{"no magic", []byte("MTRD\x01\x00\x00\x00"), original.AsIs64, 0, original.InvalidFormat},
		{"header cut", header(wire.Version)[:19], original.AsIs64, 0, original.ReadError},
		{"no events", file("MTRC"), original.AsIs64, 0, io.EOF},
		{"bytes after the end", file(heap, "MTRCxyz"), original.AsIs64, 1, io.EOF},
		{"another stream after the end", file(heap, "MTRC", string(file(heap, "MTRC"))), original.Fixed64, 1, io.EOF},
		{"no trailer, 4 bytes left for a number", file(heap, "H\x01\x02"), original.AsIs64, 0, original.ReadError},
		{"no trailer at all", file(heap, heap, "H\x01\x82\x83\x84\x85\x06"), original.AsIs64, 3, original.ReadError},
		{"another trailer", file(heap, "MTRX"), original.AsIs64, 1, original.InvalidFormat},
		{"unknown record", file(heap, "Xabcd"), original.Fixed64, 1, original.InvalidFormat},
		{"name cut", file(alloc("\x81abc")[:9]), original.Fixed64, 0, original.ReadError},
		{"longest name", file(alloc("\x81"+strings.Repeat("n", 1023)+"\x00"), "MTRC"), original.AsIs64, 1, io.EOF},
		{"longer name", file(alloc("\x81"+strings.Repeat("n", 1024)+"\x00"), "MTRC"), original.AsIs64, 0, original.Overflow},
		{"id 32", file(alloc("\xa0abc\x00"), "MTRC"), original.AsIs64, 1, io.EOF},
		{"id 33", file(alloc("\xa1abc\x00"), "MTRC"), original.AsIs64, 0, original.Crash(33)},
		{"id 127", file(alloc("\xffabc\x00"), "MTRC"), original.Fixed64, 1, io.EOF},
		{"id 0", file(alloc("\x80abc\x00"), "MTRC"), original.AsIs32, 0, original.InvalidFormat},
		{"id 0, fixed", file(alloc("\x80abc\x00"), "MTRC"), original.Fixed64, 1, io.EOF},
		{"id 0 in 64 bits", file(alloc("\x80abc\x00"), "MTRC"), original.AsIs64, 0, original.Crash(0)},
		{"version", append(header(10599), "MTRC"...), original.AsIs64, 0, io.EOF},
		{"newer version", append(header(10600), "MTRC"...), original.AsIs64, 0, original.TooNew},
		{"32 bits", append(le32, "MTRC"...), original.AsIs32, 0, io.EOF},
		{"32 bits, big-endian", append(be32, "MTRC"...), original.AsIs32, 0, io.EOF},
		{"32 bits for 64", append(le32, "MTRC...."...), original.AsIs64, 0, original.TooNew},
		{"64 bits for 32", file("MTRC"), original.AsIs32, 0, original.InvalidFormat},
	} {
		events, err := read(tt.data, tt.build)
		if len(events) != tt.events || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d events and %v, want %d and %v", tt.name, len(events), err, tt.events, tt.err)
		}
	}
}

func TestNames(t *testing.T) {
	name := func(text string) wire.Name { return wire.Name{Text: text, Known: true} }
	from := func(function, file string) string { return "F\x01\x05" + function + file + "\x07" }
	events, err := read(file(
		from("\x81one\x00", "\x81file\x00"), from("\x01", "\x02"), from("\x81two\x00", "\x00"), from("\x01", "\x01"), from("\x80none\x00", "\x00"), from("\x00", "\x82\x00"), "MTRC",
	), original.Fixed64)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var got [][2]wire.Name
	for _, e := range events {
		got = append(got, [2]wire.Name{e.Source.Function, e.Source.File})
	}
	want := [][2]wire.Name{
		{name("one"), name("file")},
		{name("one"), {}},
		{name("two"), {}},
		{name("two"), name("file")},
		{name("none"), {}},
		{{}, name("")},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSmallReads(t *testing.T) {
	data := file(strings.Repeat("H\x80\x80\x80\x80\x10\x01", 5000), "MTRC")
	want, wantErr := read(data, original.Fixed64)
	r, err := original.NewReader(&oneByOne{data}, original.Fixed64)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		var e wire.Event
		err := r.Next(&e)
		if err != nil || i == len(want) {
			if i != len(want) || !errors.Is(err, wantErr) {
				t.Errorf("%d events of %d, %v", i, len(want), err)
			}
			return
		}
		if e != want[i] {
			t.Fatalf("event %d: %+v, want %+v", i, e, want[i])
		}
	}
}

type oneByOne struct{ data []byte }

func (o *oneByOne) Read(b []byte) (int, error) {
	if len(o.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, o.data[:min(1, len(b))])
	o.data = o.data[n:]
	return n, nil
}

// For any input, reading ends with a documented error, and there are no more
// events than the input can contain.
func FuzzReader(f *testing.F) {
	f.Add(file("A\x01\x02\x03\x05\x81abc\x00\x81file\x00\x07R\x01\x05\x09\x00\x01\x01\x00F\x01\x00\x00\x00\x00MTRC"))
	f.Add(file(strings.Repeat("H\x01\x02", 2720), "A\x01\xd0\x80\x80\x80\xd0\xaa\x15 \x09\x00\x00\x00MTRC"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, b := range []original.Build{original.AsIs64, original.AsIs32, original.Fixed64} {
			events, err := read(data, b)
			_, failed := errors.AsType[original.Failure](err)
			_, crashed := errors.AsType[original.Crash](err)
			if !failed && !crashed && !errors.Is(err, io.EOF) {
				t.Fatalf("%v", err)
			}
			if len(events) > len(data)+8192 {
				t.Fatalf("%d events from %d bytes", len(events), len(data))
			}
		}
	})
}
