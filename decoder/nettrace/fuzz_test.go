package nettrace_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/trace"
)

// FuzzRead reads any input. Every error is a SyntaxError at an offset within the input,
// strict reading fails no later, a cut stream has the same events before the cut, every
// record can be written, and Undump restores the same bytes from the dump.
func FuzzRead(f *testing.F) {
	for _, file := range streams(f) {
		if data := contents(f, file); len(data) < 8000 {
			f.Add(data, uint16(len(data)/2))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		got := scan(t, bytes.NewReader(data), nettrace.Options{})
		checkError(t, got.err, len(data))
		strict := scan(t, bytes.NewReader(data), nettrace.Options{Strict: true})
		checkError(t, strict.err, len(data))
		if strict.events > got.events || errors.Is(strict.err, io.EOF) && !errors.Is(got.err, io.EOF) {
			t.Fatalf("strictly, %d events and %v; else %d and %v", strict.events, strict.err, got.events, got.err)
		}
		part := scan(t, bytes.NewReader(data[:min(int(cut), len(data))]), nettrace.Options{})
		checkError(t, part.err, int(cut))
		for key, event := range part.first {
			if whole, ok := got.first[key]; !ok || whole.Payload != event.Payload {
				t.Fatalf("cut at %d there is the event %+v, else %+v", cut, event, whole)
			}
		}
		readRecords(t, data)
		checkDump(t, data)
	})
}

func checkError(t *testing.T, err error, size int) {
	t.Helper()
	if errors.Is(err, io.EOF) {
		return
	}
	syntax, ok := errors.AsType[*trace.SyntaxError](err)
	if !ok || syntax.Format != "nettrace" || syntax.Offset < 0 || syntax.Offset > int64(size) {
		t.Fatalf("%v", err)
	}
	for _, is := range []error{trace.ErrTruncated, trace.ErrMalformed, trace.ErrUnsupported, trace.ErrLimit} {
		if errors.Is(err, is) {
			return
		}
	}
	t.Fatalf("%v is none of the errors of a decoder", err)
}

// readRecords reads data as records and writes them.
func readRecords(t *testing.T, data []byte) {
	t.Helper()
	r, err := nettrace.NewReader(bytes.NewReader(data), nettrace.Options{})
	if err != nil {
		checkError(t, err, len(data))
		return
	}
	w := jsonl.New(io.Discard)
	calls := uint64(0)
	var rec trace.Record
	for err = r.ReadRecord(&rec); err == nil; err = r.ReadRecord(&rec) {
		if rec.Kind == trace.KindCall {
			if calls++; rec.Call.Seq == 0 {
				t.Fatalf("%+v", rec.Call)
			}
		}
		if err := w.WriteRecord(&rec); err != nil {
			t.Fatal(err)
		}
	}
	checkError(t, err, len(data))
	if again := r.ReadRecord(&rec); again.Error() != err.Error() {
		t.Fatalf("after %v: %v", err, again)
	}
	if s := r.Stats(); s.Calls != calls {
		t.Fatalf("%d calls, counted as %d", calls, s.Calls)
	}
}
