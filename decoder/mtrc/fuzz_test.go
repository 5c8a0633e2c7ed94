package mtrc_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/mtrc"
	encoder "rtrace-bpf/encoder/mtrc"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// FuzzRead reads any input. Every error is a SyntaxError at an offset within the input,
// events never go back, strict reading fails no later, and what was read is written and
// read again unchanged.
func FuzzRead(f *testing.F) {
	for _, path := range traces(f) {
		if data := contents(f, path+".trace"); len(data) < 4000 {
			f.Add(data)
		}
	}
	f.Add([]byte(little + "F\x01\x00\x80f\x00\x7f\x00MTRC" + little + "MTRCx"))
	f.Add([]byte(little + "A\x01\x10\x08\x00\x00\x00\x00" + little + "R\x01\x20\x08\x00\x00\x00\x00MTRC"))
	f.Fuzz(func(t *testing.T, data []byte) {
		events := scanForward(t, data)
		once, calls, dropped := again(t, data)
		if calls+dropped != events {
			t.Fatalf("%d events, but %d calls and %d that are none", events, calls, dropped)
		}
		if once == nil {
			return
		}
		twice, _, dropped := again(t, once)
		if !bytes.Equal(once, twice) || dropped != 0 {
			t.Fatalf("written as\n%q\nwhich is read and written as\n%q\nwith %d events dropped", once, twice, dropped)
		}
	})
}

// scanForward checks how a scanner moves through data and returns how many events of
// blocks it delivers.
func scanForward(t *testing.T, data []byte) (events uint64) {
	var all []wire.Event
	s, err := mtrc.NewScanner(bytes.NewReader(data), mtrc.Options{})
	if err == nil {
		last := s.Offset()
		for more := true; more; {
			var e wire.Event
			for err = s.Next(&e); err == nil; err = s.Next(&e) {
				if s.Offset() <= last {
					t.Fatalf("an event ends at %d, the one before at %d", s.Offset(), last)
				}
				last = s.Offset()
				all = append(all, e)
				if e.Kind != wire.Heap && e.Kind != wire.Internal {
					events++
				}
			}
			if !errors.Is(err, io.EOF) {
				break
			}
			if more, err = s.NextStream(); err == nil && !more {
				err = io.EOF
			}
		}
	}
	strict, _, strictErr := scanBytes(t, data, mtrc.Options{Strict: true})
	if len(strict) > len(all) || !slices.Equal(strict, all[:len(strict)]) {
		t.Fatalf("strictly, other events are read: %s", cmp.Diff(all, strict))
	}
	if !errors.Is(err, io.EOF) {
		checkError(t, err, data)
		if errors.Is(strictErr, io.EOF) {
			t.Fatalf("strictly, what fails with %v is taken", err)
		}
	}
	return events
}

func checkError(t *testing.T, err error, data []byte) {
	t.Helper()
	syntax, ok := errors.AsType[*trace.SyntaxError](err)
	if !ok || syntax.Format != "mtrc" || syntax.Offset < 0 || syntax.Offset > int64(len(data)) {
		t.Fatalf("%v", err)
	}
	for _, is := range []error{trace.ErrTruncated, trace.ErrMalformed, trace.ErrUnsupported, trace.ErrLimit} {
		if errors.Is(err, is) {
			return
		}
	}
	t.Fatalf("%v is none of the errors of a decoder", err)
}

// again reads data and writes what was read. It returns nil if nothing can be read, the
// number of calls that were read, and the number of events that were dropped.
func again(t *testing.T, data []byte) (out []byte, calls, dropped uint64) {
	r, err := mtrc.NewReader(bytes.NewReader(data), mtrc.Options{})
	if err != nil {
		return nil, 0, 0
	}
	var buf bytes.Buffer
	w, err := encoder.New(&buf, encoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rec trace.Record
	for err = r.ReadRecord(&rec); err == nil; err = r.ReadRecord(&rec) {
		if rec.Kind == trace.KindCall {
			if calls++; rec.PID == 0 && rec.Call.Seq == 0 {
				t.Fatalf("%+v", rec.Call)
			}
		}
		if err := w.WriteRecord(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, io.EOF) {
		checkError(t, err, data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	stats := r.Stats()
	if d := cmp.Diff(calls, stats.Calls); d != "" {
		t.Fatal(d)
	}
	return buf.Bytes(), calls, stats.Unknown
}
