package mtrc_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	jsonlin "rtrace-bpf/decoder/jsonl"
	decoder "rtrace-bpf/decoder/mtrc"
	jsonlout "rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/encoder/mtrc"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

const corpus = "../../testdata/corpus/mpatrol"

// files returns the matching files of the corpus, including those that may not be
// redistributed if their folder is given.
func files(t testing.TB, folder string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(corpus, folder, "*.trace"))
	if err != nil || len(all) < 5 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	if outside := os.Getenv("RTRACE_CORPUS"); outside != "" && folder == "real" {
		more, err := filepath.Glob(filepath.Join(outside, "mpatrol/samples-1.3.0/*.trace"))
		if err != nil || len(more) == 0 {
			t.Fatalf("RTRACE_CORPUS has no samples of mpatrol 1.3.0 (%v)", err)
		}
		all = append(all, more...)
	}
	return all
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// encode writes the records of r and checks that the result follows the rules. A cut
// input is not an error.
func encode(t testing.TB, r trace.Reader, o mtrc.Options) ([]byte, mtrc.Stats) {
	t.Helper()
	var out bytes.Buffer
	w, err := mtrc.New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Copy(w, r); err != nil && !errors.Is(err, trace.ErrTruncated) {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rules(o, w.Stats()).Check(t, out.Bytes())
	return out.Bytes(), w.Stats()
}

// rules returns the rules for files with one process in each stream.
func rules(o mtrc.Options, s mtrc.Stats) testutil.MTRCRules {
	r := testutil.MTRCRules{Shared: s.Shared > 0}
	if o.Legacy {
		r.Limit = wire.LegacyLimit
	}
	return r
}

func read(t testing.TB, data []byte) *decoder.Reader {
	t.Helper()
	r, err := decoder.NewReader(bytes.NewReader(data), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// throughJSON writes the records of r as jsonl and returns a reader of that.
func throughJSON(t testing.TB, r trace.Reader) trace.Reader {
	t.Helper()
	var out bytes.Buffer
	w := jsonlout.New(&out)
	if err := errors.Join(trace.Copy(w, r), w.Close()); err != nil && !errors.Is(err, trace.ErrTruncated) {
		t.Fatal(err)
	}
	return jsonlin.New(&out, jsonlin.Options{})
}

// events returns all events of all streams, with their headers.
func events(t testing.TB, data []byte) (headers []wire.Header, all []wire.Event) {
	t.Helper()
	s, err := decoder.NewScanner(bytes.NewReader(data), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		headers = append(headers, s.Header())
		var e wire.Event
		for err = s.Next(&e); err == nil; err = s.Next(&e) {
			all = append(all, e)
		}
		if !errors.Is(err, io.EOF) {
			if !errors.Is(err, trace.ErrTruncated) {
				t.Fatal(err)
			}
			return headers, all
		}
		if more, err = s.NextStream(); err != nil {
			t.Fatal(err)
		}
	}
	return headers, all
}

// The files of the real library are written again byte for byte, also through jsonl.
func TestRealFilesAgain(t *testing.T) {
	for _, path := range files(t, "real") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want := contents(t, path)
			for way, r := range map[string]trace.Reader{
				"directly": read(t, want), "through jsonl": throughJSON(t, read(t, want)),
			} {
				got, stats := encode(t, r, mtrc.Options{})
				if !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, want %d; they differ from %d on", way, len(got), len(want), common(got, want))
				}
				if stats != (mtrc.Stats{}) {
					t.Errorf("%s: %+v", way, stats)
				}
			}
		})
	}
}

func common(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// Files made by hand have the same events when they are written again, except where
// they break the rules for writers.
func TestHandmadeFilesAgain(t *testing.T) {
	mended := map[string]func([]wire.Event) []wire.Event{
		// No block has index 0, and an index in use is not used again.
		"h_zero": func(e []wire.Event) []wire.Event {
			e[0].Index, e[1].Index, e[2].Index = 1, 2, 1
			e[3].Index = 3
			return e
		},
		"h_dupindex": func(e []wire.Event) []wire.Event { e[1].Index, e[2].Index = 2, 2; return e },
		// A free of an unknown block is dropped, a move of one becomes an allocation.
		"h_unknownindex": func(e []wire.Event) []wire.Event {
			e[2].Kind = wire.Alloc
			return append(e[:1], e[2:]...)
		},
		// If two blocks have one address, the first is freed.
		"h_high":  lostFrees,
		"h_redef": lostFrees,
		// An empty name means no name.
		"h_emptyname": func(e []wire.Event) []wire.Event {
			e[0].Source.Function.Known, e[0].Source.File.Known = false, false
			return e
		},
	}
	for _, path := range files(t, "handmade") {
		name := strings.TrimSuffix(filepath.Base(path), ".trace")
		if name == "h_v10600" {
			continue // it is rejected
		}
		t.Run(name, func(t *testing.T) {
			data := contents(t, path)
			wantHeaders, want := events(t, data)
			if mend := mended[name]; mend != nil {
				want = mend(want)
			}
			for way, r := range map[string]trace.Reader{
				"directly": read(t, data), "through jsonl": throughJSON(t, read(t, data)),
			} {
				again, _ := encode(t, r, mtrc.Options{})
				headers, got := events(t, again)
				if d := cmp.Diff(wantHeaders, headers); d != "" {
					t.Errorf("%s: headers (-want +got):\n%s", way, d)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: events (-want +got):\n%s", way, d)
				}
			}
		})
	}
}

// lostFrees adds a free for each block that is live where another begins.
func lostFrees(events []wire.Event) []wire.Event {
	var all []wire.Event
	at := map[uint64]uint64{}
	for _, e := range events {
		if e.Kind == wire.Alloc {
			if old, ok := at[e.Address]; ok {
				all = append(all, wire.Event{Kind: wire.Free, Index: old})
			}
			at[e.Address] = e.Index
		}
		all = append(all, e)
	}
	return all
}
