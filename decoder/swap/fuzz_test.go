package swap_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/swap"
	encoder "rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/trace"
)

// FuzzRead reads any input. Every error is a SyntaxError at an offset within the input,
// Undump restores the same bytes from the dump, strict reading fails no later, and what
// was read is written and read again unchanged.
func FuzzRead(f *testing.F) {
	for _, path := range vectors(f) {
		f.Add(contents(f, path+".bin"))
	}
	f.Add(stream(f, 70, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		// With a small limit, its error is tested, too.
		o := swap.Options{MaxMessage: 1 << 16}
		for _, dump := range []func(io.Writer, io.Reader, swap.Options) (uint64, error){swap.Dump, swap.DumpControl, swap.DumpUI} {
			var text, back bytes.Buffer
			_, err := dump(&text, bytes.NewReader(data), o)
			checkError(t, err, data)
			if err := swap.Undump(&back, bytes.NewReader(text.Bytes())); err != nil || !bytes.Equal(back.Bytes(), data) {
				t.Fatalf("undump: %v, of\n%s", err, text.String())
			}
		}
		swap.Match(data)
		swap.MatchControl(data)
		first := again(t, data, o)
		if first == nil {
			return
		}
		if second := again(t, first, swap.Options{}); !bytes.Equal(first, second) {
			t.Fatalf("written as\n%x\nwhich is read and written as\n%x", first, second)
		}
	})
}

func checkError(t *testing.T, err error, data []byte) {
	t.Helper()
	if err == nil {
		return
	}
	syntax, ok := errors.AsType[*trace.SyntaxError](err)
	if !ok || syntax.Format != "swap" || syntax.Offset < 0 || syntax.Offset > int64(len(data)) {
		t.Fatalf("%v", err)
	}
	for _, is := range []error{trace.ErrTruncated, trace.ErrMalformed, trace.ErrUnsupported, trace.ErrLimit} {
		if errors.Is(err, is) {
			return
		}
	}
	t.Fatalf("%v is none of the errors of a decoder", err)
}

// lines returns the valid contents of records as text.
func lines(t *testing.T, records []*trace.Record) (all []string) {
	t.Helper()
	for _, r := range records {
		line, err := jsonrecord.Append(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(line))
	}
	return all
}

// again reads data and writes what was read.
func again(t *testing.T, data []byte, o swap.Options) []byte {
	records, stats, err := read(t, data, o)
	checkError(t, err, data)
	o.Strict = true
	strict, _, strictErr := read(t, data, o)
	checkError(t, strictErr, data)
	if len(strict) > len(records) {
		t.Fatalf("strictly, %d records are read, not %d", len(strict), len(records))
	}
	if d := cmp.Diff(lines(t, records[:len(strict)]), lines(t, strict)); d != "" {
		t.Fatalf("strictly, other records are read: %s", d)
	}
	if err != nil && strictErr == nil {
		t.Fatalf("strictly, what fails with %v is taken", err)
	}
	if stats.Messages == 0 {
		return nil
	}
	var out bytes.Buffer
	w, err := encoder.New(&out, encoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
