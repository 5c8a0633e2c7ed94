package sptext_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	decoder "rtrace-bpf/decoder/sptext"
	encoder "rtrace-bpf/encoder/sptext"
	"rtrace-bpf/trace"
)

const corpus = "../../testdata/corpus/sp-rtrace"

// texts returns the names of the files with what the real post-processor printed for
// the corpus.
func texts(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"out/*/*.txt", "synthetic/*.plain.txt", "synthetic/*.lc*.txt"} {
		m, err := filepath.Glob(filepath.Join(corpus, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m...)
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		switch filepath.Base(name) {
		case "pagemap-count.txt", "pagemap-density.txt", "pagemap-pages.txt": // reports, not traces
			return true
		}
		return false
	})
	if len(all) < 30 {
		t.Fatalf("only %d texts in %s", len(all), corpus)
	}
	return all
}

func contents(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rewrite reads a text and writes it again.
func rewrite(text string, legacy bool) (string, error) {
	d, err := decoder.New(strings.NewReader(text), decoder.Options{Location: time.UTC, Legacy: legacy})
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	w, err := encoder.New(&b, encoder.Options{KeepSeq: true, Location: time.UTC, Legacy: legacy})
	if err != nil {
		return "", err
	}
	if err := trace.Copy(w, d); err != nil {
		return "", err
	}
	err = w.Close()
	return b.String(), err
}

func compressed(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	return strings.Contains(line, "compress")
}

// TestRoundTrip: the output of the real tool is read and written unchanged, except for
// temporary comments, the types of resources while only one is declared yet, and
// compressed calls.
func TestRoundTrip(t *testing.T) {
	for _, name := range texts(t) {
		text := contents(t, name)
		if compressed(text) {
			continue
		}
		t.Run(filepath.ToSlash(name[len(corpus)+1:]), func(t *testing.T) {
			var kept strings.Builder
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "# ") {
					kept.WriteString(line)
				}
			}
			want := kept.String()
			if strings.Contains(name, "nobt") || strings.Contains(name, "trunc") {
				want = spaced(want)
			}
			got, err := rewrite(text, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// spaced adds an empty line to calls that lack one because the binary trace had no
// stack packet for them.
func spaced(text string) string {
	var b strings.Builder
	open := false
	for line := range strings.Lines(text) {
		call := line[0] >= '0' && line[0] <= '9'
		if open && call {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		open = call || open && line != "\n"
	}
	if open {
		b.WriteByte('\n')
	}
	return b.String()
}

// TestCompressed: each call of a group gets the stack of the group, and writing them
// separately changes nothing else.
func TestCompressed(t *testing.T) {
	n := 0
	for _, name := range texts(t) {
		text := contents(t, name)
		if !compressed(text) {
			continue
		}
		n++
		once, err := rewrite(text, false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		twice, err := rewrite(once, false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(once, twice); d != "" {
			t.Errorf("%s: second pass (-first +second):\n%s", name, d)
		}
		if a, b := countCalls(text), countCalls(once); a != b {
			t.Errorf("%s: %d calls became %d", name, a, b)
		}
	}
	if n == 0 {
		t.Error("no compressed text in the corpus")
	}
}

func countCalls(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if line[0] >= '0' && line[0] <= '9' {
			n++
		}
	}
	return n
}

// FuzzReader: for any text, every error is a *trace.SyntaxError, the number of records
// is in proportion to the input, and text that was written from what was read does not
// change any more.
func FuzzReader(f *testing.F) {
	for _, name := range texts(f) {
		text := contents(f, name)
		f.Add([]byte(text[:min(len(text), 1500)]), false)
	}
	f.Add([]byte("pid=1, \n1. @1 [1:2:3.4] a<b>(1) = 0x1\n\t$a = b c\n\t0x1 x\n\n@ 1 : x\n<1> : b (c) [refcount]\n& a : b\n## lost: 1 events (x)\n"), true)
	f.Fuzz(func(t *testing.T, in []byte, legacy bool) {
		d, err := decoder.New(bytes.NewReader(in), decoder.Options{Location: time.UTC, Legacy: legacy})
		if err != nil {
			t.Fatal(err)
		}
		var rec trace.Record
		records, held := 0, 0
		for {
			err := d.ReadRecord(&rec)
			if err != nil {
				_, syntax := errors.AsType[*trace.SyntaxError](err)
				if err != io.EOF && !syntax {
					t.Fatalf("error %v", err)
				}
				break
			}
			records++
			if rec.Kind == trace.KindCall {
				if n := len(rec.Call.Stack.Names); n != 0 && n != len(rec.Call.Stack.Frames) {
					t.Fatalf("%d names for %d frames", n, len(rec.Call.Stack.Frames))
				}
				held += len(rec.Call.Args)
			}
		}
		if records > len(in)+2 || held > len(in) {
			t.Fatalf("%d records and %d arguments from %d bytes", records, held, len(in))
		}
		if legacy {
			return
		}
		once, err := rewrite(string(in), false)
		if err != nil {
			return
		}
		// A call without a type before all declarations has no resource. Written after
		// one, it has the first resource.
		if once, err = rewrite(once, false); err != nil {
			t.Fatalf("first reading of what was written: %v\n%q", err, once)
		}
		twice, err := rewrite(once, false)
		if err != nil {
			t.Fatalf("second reading: %v\n%q", err, once)
		}
		if once != twice {
			t.Fatalf("not stable:\n%q\n%q", once, twice)
		}
	})
}

// benchText returns a text with a stack of 9 frames for every second call.
func benchText() []byte {
	var b bytes.Buffer
	b.WriteString("version=2.0, arch=x86_64, timestamp=2026.11.21 09:32:17, process=x, pid=1, backtrace depth=10, origin=x, \n")
	b.WriteString("<1> : memory (memory allocation in bytes)\n")
	for range 5000 {
		b.WriteString("100001. [00:42:22.936] malloc(100) = 0x55c9a22662a0\n")
		for range 9 {
			b.WriteString("\t0x55c9757eb1b8\n")
		}
		b.WriteString("\n100002. [00:42:22.936] free(0x55c9a22662a0)\n\n")
	}
	return b.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	text := benchText()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	calls := 0
	for b.Loop() {
		d, err := decoder.New(bytes.NewReader(text), decoder.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var rec trace.Record
		for d.ReadRecord(&rec) == nil {
			if rec.Kind == trace.KindCall {
				calls++
			}
		}
	}
	b.ReportMetric(float64(calls)/b.Elapsed().Seconds()/1e6, "Mcalls/s")
}
