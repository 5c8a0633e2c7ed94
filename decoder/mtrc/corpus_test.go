package mtrc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

const corpus = "../../testdata/corpus/mpatrol"

// rows prints the events of the first stream as the table of mptrace has them:
// the columns that say what the file holds, not what mptrace makes of it.
func rows(s *Scanner) (string, error) {
	type block struct{ address, size uint64 }
	var (
		out    strings.Builder
		e      wire.Event
		n      int
		err    error
		width  = 2 * s.Header().Words
		blocks = map[uint64]block{}
	)
	for err = s.Next(&e); err == nil; err = s.Next(&e) {
		switch e.Kind {
		case wire.Heap:
			fmt.Fprintf(&out, "reserve 0x%0*X %d\n", width, e.Address, e.Size)
			continue
		case wire.Internal:
			fmt.Fprintf(&out, "internal 0x%0*X %d\n", width, e.Address, e.Size)
			continue
		}
		n++
		name := map[wire.Kind]string{wire.Alloc: "alloc", wire.Realloc: "realloc", wire.Free: "free"}[e.Kind]
		old, known := blocks[e.Index]
		if e.Kind == wire.Free {
			e.Address, e.Size = old.address, old.size
		}
		if !known && e.Kind != wire.Alloc {
			continue // mptrace prints no row for it, only a complaint
		}
		blocks[e.Index] = block{e.Address, e.Size}
		fmt.Fprintf(&out, "%d %s %d 0x%0*X %d\n", n, name, e.Index, width, e.Address, e.Size)
		var parts []string
		if src := e.Source; src.Thread != 0 {
			parts = append(parts, fmt.Sprintf("thread %d", src.Thread))
		}
		if src := e.Source; src.Function.Known {
			parts = append(parts, "in "+src.Function.Text)
		}
		if src := e.Source; src.File.Known && src.Line != 0 {
			parts = append(parts, fmt.Sprintf("at %s line %d", src.File.Text, src.Line))
		}
		if len(parts) > 0 {
			fmt.Fprintf(&out, "%s\n", strings.Join(parts, " "))
		}
	}
	return out.String(), err
}

// row matches what is wanted of a row of the table.
var row = regexp.MustCompile(`^ *(\d+)? +([a-z]+) +(\d+)? +(0x[0-9A-F]+) +(\d+)`)

// tableRows reduces a table of mptrace to what rows prints.
func tableRows(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			break // the statistics follow
		}
		if m := row.FindStringSubmatch(line); m != nil {
			if m[1] != "" {
				fmt.Fprintf(&out, "%s %s %s %s %s\n", m[1], m[2], m[3], m[4], m[5])
			} else {
				fmt.Fprintf(&out, "%s %s %s\n", m[2], m[4], m[5])
			}
		} else if source, ok := strings.CutPrefix(line, strings.Repeat(" ", 24)); ok {
			fmt.Fprintln(&out, source)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// open opens a file of the corpus.
func open(t testing.TB, path string, o Options) (*Scanner, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return NewScanner(bytes.NewReader(data), o)
}

// The events of every file are what the real tool, or its corrected form where
// it has faults, printed.
func TestCorpusTables(t *testing.T) {
	files := traces(t)
	for _, path := range files {
		name := strings.TrimSuffix(path, ".trace")
		t.Run(filepath.Base(name), func(t *testing.T) {
			s, err := open(t, path, Options{})
			if filepath.Base(name) == "h_v10600" {
				if !errors.Is(err, trace.ErrUnsupported) || !strings.Contains(err.Error(), "1.6.0") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := rows(s)
			want := io.EOF
			if filepath.Base(name) == "h_notrailer" {
				want = trace.ErrTruncated
			}
			if !errors.Is(err, want) {
				t.Errorf("it ends with %v", err)
			}
			table := ""
			for _, label := range []string{"asis64", "asis32", "fixed64"} { // the best comes last
				if name := name + "." + label + ".table.txt"; exists(name) {
					table = name
				}
			}
			if want := tableRows(t, table); got != want && !known[filepath.Base(name)] {
				t.Errorf("events differ from %s: %s", table, firstDifference(got, want))
			}
		})
	}
}

// known are the files whose table is wrong or incomplete.
var known = map[string]bool{
	"h_notrailer":        true, // the tool drops the last events
	"h_200names_cache32": true, // addresses and threads above 2^31; see TestNames
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// traces returns the tracing files of the corpus, with those that may not be
// redistributed if their folder is given.
func traces(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(corpus + "/*/*.trace")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if folder := os.Getenv("RTRACE_CORPUS"); folder != "" {
		more, err := filepath.Glob(filepath.Join(folder, "mpatrol/samples-1.3.0/*.trace"))
		if err != nil || len(more) == 0 {
			t.Fatalf("RTRACE_CORPUS has no samples of mpatrol 1.3.0 (%v)", err)
		}
		files = append(files, more...)
	}
	return files
}
