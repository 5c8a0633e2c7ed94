package decoder_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// recorded returns a trace in a format as rtrace-bpf writes it, and its side file if
// the format needs one.
func recorded(t *testing.T, format string, ends bool) (data, side []byte) {
	t.Helper()
	records := calls(3)
	records[0].Header.Origin, records[0].Header.Ends = "rtrace-bpf 1", ends
	if format == "sprtrace" {
		records = slices.Insert(records, 1, &trace.Record{Kind: trace.KindAttachment, Attachment: trace.Attachment{Name: "side", Path: "t.side"}})
	}
	records = append(records,
		&trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x1000, End: 0x2000, Path: "/lib/a"}},
		&trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 2, Reason: "ring full"}},
		&trace.Record{Kind: trace.KindEnd})
	data = encode(t, format, records)
	if f, err := encoder.Lookup(format); err != nil || f.Whole {
		return data, nil
	}
	path := filepath.Join(t.TempDir(), "side")
	w, err := sidefile.NewWriter(path, encoder.Positions(format))
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
	if side, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return data, side
}

// readPair reads a trace and its side file, if side is not nil.
func readPair(t *testing.T, dir string, data, side []byte) error {
	t.Helper()
	path := filepath.Join(dir, "t")
	var (
		in  *decoder.Trace
		err error
	)
	if side == nil {
		in, err = decoder.Open(bytes.NewReader(data), decoder.Options{})
	} else {
		if err := errors.Join(os.WriteFile(path, data, 0o600), os.WriteFile(path+".side", side, 0o600)); err != nil {
			t.Fatal(err)
		}
		in, err = decoder.OpenFile(path, decoder.Options{})
	}
	if err != nil {
		return err
	}
	_, err = seqs(in)
	return errors.Join(err, in.Close())
}

// A trace of rtrace-bpf that is cut anywhere is reported as cut, with its side file and
// without. So is a whole trace whose side file is cut. The exceptions listed here are
// those in docs/loss.md.
func TestCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	for _, f := range encoder.Formats() {
		t.Run(f.Name, func(t *testing.T) {
			data, side := recorded(t, f.Name, true)
			for _, side := range [][]byte{nil, side} {
				if err := readPair(t, dir, data, side); err != nil {
					t.Fatalf("the whole trace, %d bytes of side file: %v", len(side), err)
				}
				first := bytes.IndexByte(data, '\n') + 1 // where the first line of a text ends
				for n := range data {
					err := readPair(t, dir, data[:n:n], side)
					switch {
					case f.Name == "jsonl" && n == len(data)-1: // only the line feed after the end is missing
					case f.Name == "jsonl" && (n == first || n == first-1): // only the first line is left
					case f.Name == "text" && n == first && side == nil: // only the first line is left
					case err == nil:
						t.Errorf("%d of %d bytes, with %d bytes of side file: no error", n, len(data), len(side))
					}
				}
			}
			for n := range max(len(side)-1, 0) {
				if err := readPair(t, dir, data, side[:n:n]); !errors.Is(err, trace.ErrTruncated) {
					t.Errorf("%d of %d bytes of the side file: %v", n, len(side), err)
				}
			}
		})
	}
}

// Traces that announce no end, as those of other tools and earlier versions, together
// with their side files.
func TestCutOfEarlierVersions(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []string{"sprtrace", "text", "swap"} {
		data, side := recorded(t, format, false)
		if err := readPair(t, dir, data, nil); err != nil {
			t.Errorf("%s without a side file: %v", format, err)
		}
		if err := readPair(t, dir, data, side); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		more := strings.NewReplacer(`{"at":3,`, `{"at":20779,`).Replace(string(side))
		if err := readPair(t, dir, data, []byte(more)); !errors.Is(err, trace.ErrUnfinished) || !strings.Contains(err.Error(), "it has 3 calls, and its side file is about 20779") {
			t.Errorf("%s with a side file about more: %v", format, err)
		}
	}
}

// A tracer that was killed leaves no side file.
func TestSideFileThatIsMissing(t *testing.T) {
	for _, ends := range []bool{true, false} {
		data, _ := recorded(t, "sprtrace", ends)
		path := filepath.Join(t.TempDir(), "t")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var warnings []string
		in, err := decoder.OpenFile(path, decoder.Options{Warn: func(err error) { warnings = append(warnings, err.Error()) }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = seqs(in)
		warned := len(warnings) == 1 && strings.Contains(warnings[0], "t.side is missing")
		if ends && (err != nil || !warned) || !ends && (!errors.Is(err, trace.ErrUnfinished) || len(warnings) > 0) {
			t.Errorf("end %v: %v, warnings %q", ends, err, warnings)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Two streams in one file, of a process and its child, each with an end or without.
func TestStreamWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	data, _ := recorded(t, "mtrc", true)
	const trailer = 4
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"both", slices.Concat(data, data), ""},
		{"the first", slices.Concat(data[:len(data)-trailer], data), "stream 1 of 2 has no end"},
		{"the first two", slices.Concat(data[:len(data)-trailer], data[:len(data)-trailer], data), "2 of 3 streams have no end"},
	} {
		err := readPair(t, dir, tt.data, nil)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, trace.ErrUnfinished) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Mappings that end before they start are left out, in every format.
func TestMappingsThatEndBeforeTheyStart(t *testing.T) {
	for _, f := range encoder.Formats() {
		if f.Name == "mtrc" {
			continue // the format has no mappings
		}
		records := calls(1)
		for _, end := range []uint64{0x6000, 0x4000} {
			mapping := trace.Mapping{Start: 0x5000, End: end, Path: "/lib/a"}
			records = append(records, &trace.Record{Kind: trace.KindMapping, Time: 1e9, PID: 9, Mapping: mapping})
		}
		in, err := decoder.Open(bytes.NewReader(encode(t, f.Name, records)), decoder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := trace.Load(in)
		if err != nil {
			t.Fatal(err)
		}
		mappings := 0
		for _, r := range all {
			if r.Kind == trace.KindMapping {
				mappings++
			}
		}
		if mappings != 1 || in.Stats().Skipped != 1 {
			t.Errorf("%s: %d mappings, %d records skipped", f.Name, mappings, in.Stats().Skipped)
		}
	}
}
