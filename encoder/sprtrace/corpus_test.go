package sprtrace_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	decoder "rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/trace"
)

const corpus = "../../testdata/corpus/sp-rtrace"

// differs lists the corpus traces that encoding changes, and how.
var differs = map[string]string{
	"heapinfo":      "HINF gets its right size of 56 bytes",
	"argsafter":     "ARGS go before BTRC",
	"c-leaks-nobt":  "every CALL gets a BTRC",
	"c-leaks-trunc": "the cut packet is gone and the last call gets a BTRC",
	"multi-docstr":  "string lengths count the padding",
	"multi-v12":     "becomes version 2.0",
	"multi-v14":     "becomes version 2.0",
}

// like lists the corpus trace that such a trace must become equal to.
var like = map[string]string{
	"heapinfo":     "", // the upper halves of the bounds are lost
	"argsafter":    "file-args",
	"multi-docstr": "multi",
	"multi-v14":    "multi",
	"multi-v12":    "", // the flags of the resources are lost
	"c-leaks-nobt": "", // the stacks are lost
}

func TestReencodeCorpus(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.rtrace", "synthetic/*.rtrace"} {
		m, err := filepath.Glob(filepath.Join(corpus, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, m...)
	}
	if len(files) < 27 {
		t.Fatalf("%d traces in the corpus", len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".rtrace")
		t.Run(name, func(t *testing.T) {
			data := read(t, file)
			got, stats := reencode(t, data, sprtrace.Options{KeepOpaque: true})
			if stats.Bytes != int64(len(got)) {
				t.Errorf("stats say %d bytes, wrote %d", stats.Bytes, len(got))
			}
			why, differ := differs[name]
			if same := bytes.Equal(got, data); same == differ {
				t.Errorf("re-encoding gives the same bytes: %v; listed as different: %v (%s)\n%s", same, differ, why, firstDifference(data, got))
			}
			if base := like[name]; base != "" {
				// OCFG holds the name of the recording.
				want := read(t, filepath.Join(corpus, base+".rtrace"))
				if !bytes.Equal(withoutOCFG(t, got), withoutOCFG(t, want)) {
					t.Errorf("does not become %s\n%s", base, firstDifference(want, got))
				}
			}
		})
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reencode decodes and encodes data.
func reencode(t testing.TB, data []byte, opts sprtrace.Options) ([]byte, sprtrace.Stats) {
	t.Helper()
	d, err := decoder.New(bytes.NewReader(data), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e, err := sprtrace.New(&out, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Copy(e, d); err != nil && !errors.Is(err, trace.ErrTruncated) {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), e.Stats()
}

// withoutOCFG returns a trace without its output settings.
func withoutOCFG(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := decoder.NewWalker(bytes.NewReader(data), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		out []byte
		p   decoder.Packet
	)
	for w.Next(&p) == nil {
		if p.Name != "OCFG" {
			out = append(out, p.Raw...)
		}
	}
	return out
}

// firstDifference returns the first difference between the dumps of two traces.
func firstDifference(want, got []byte) string {
	var a, b bytes.Buffer
	_ = decoder.Dump(&a, bytes.NewReader(want), decoder.Options{})
	_ = decoder.Dump(&b, bytes.NewReader(got), decoder.Options{})
	al, bl := strings.Split(a.String(), "\n"), strings.Split(b.String(), "\n")
	for i := range min(len(al), len(bl)) {
		if al[i] != bl[i] {
			return "want " + al[i] + "\ngot  " + bl[i]
		}
	}
	return "one is longer"
}
