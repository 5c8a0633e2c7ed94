package mtrc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

const corpus = "../../testdata/corpus/mpatrol"

// traces returns the tracing files of the corpus, without their suffix, including those
// that may not be redistributed if their folder is given.
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
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".trace")
	}
	return files
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// oracle returns what mptrace printed for a file, in the best of its forms.
func oracle(t testing.TB, name, what string) string {
	t.Helper()
	for _, label := range []string{"fixed64", "asis32", "asis64"} {
		if path := name + "." + label + "." + what + ".txt"; exists(path) {
			return path
		}
	}
	t.Fatalf("%s has no %s", name, what)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The events of every file are those that the real tool printed, or its corrected form
// where there is one.
func TestCorpusTables(t *testing.T) {
	// The tables of these files are wrong: the tool drops the last events of a file
	// without a trailer, and misreads large numbers.
	ends := map[string]error{"h_notrailer": trace.ErrTruncated}
	wrong := map[string]bool{"h_notrailer": true, "h_200names_cache32": true}
	for _, path := range traces(t) {
		name := filepath.Base(path)
		if name == "h_v10600" {
			continue // rejected; see TestHeaders
		}
		t.Run(name, func(t *testing.T) {
			s, err := mtrc.NewScanner(bytes.NewReader(contents(t, path+".trace")), mtrc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			rows := testutil.TraceRows{Words: s.Header().Words}
			var e wire.Event
			for err = s.Next(&e); err == nil; err = s.Next(&e) {
				rows.Add(&e)
			}
			want := io.EOF
			if ends[name] != nil {
				want = ends[name]
			}
			if !errors.Is(err, want) {
				t.Errorf("it ends with %v", err)
			}
			table := testutil.MptraceTable(t, oracle(t, path, "table"))
			if (rows.String() == table) == wrong[name] {
				t.Errorf("events: %s", testutil.FirstDifference(rows.String(), table))
			}
		})
	}
}

// 512 events with 201 function names, 41 file names and large numbers, which are known
// from how the file was made.
func TestNamesAndLargeNumbers(t *testing.T) {
	data := contents(t, corpus+"/handmade/h_200names_cache32.trace")
	s, err := mtrc.NewScanner(bytes.NewReader(data), mtrc.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	functions, files, threads := map[string]bool{}, map[string]bool{}, map[uint64]bool{}
	kinds := map[wire.Kind]int{}
	low, high, line := ^uint64(0), uint64(0), uint64(0)
	var e wire.Event
	for err = s.Next(&e); err == nil; err = s.Next(&e) {
		kinds[e.Kind]++
		functions[e.Source.Function.Text], files[e.Source.File.Text] = true, true
		threads[e.Source.Thread] = true
		line = max(line, e.Source.Line)
		if e.Kind == wire.Alloc {
			low, high = min(low, e.Address), max(high, e.Address)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	// Records of kind H have none of these.
	delete(functions, "")
	delete(files, "")
	delete(threads, 0)
	if len(functions) != 201 || len(files) != 41 || len(threads) != 5 || !threads[0x7f0000001000] {
		t.Errorf("%d functions, %d files, threads %v", len(functions), len(files), threads)
	}
	if n := kinds[wire.Alloc] + kinds[wire.Realloc] + kinds[wire.Free]; n != 510 || kinds[wire.Realloc] != 10 || kinds[wire.Free] != 100 {
		t.Errorf("kinds %v", kinds)
	}
	if low>>40 != 0x55 || high>>40 != 0x55 || line != 70000 {
		t.Errorf("addresses %#x to %#x, highest line %d", low, high, line)
	}
}

var statsLine = regexp.MustCompile(`(?m)^(allocated|freed|unfreed|reserved|internal): +(\d+) \((\d+) bytes?\)$`)

// The records of every file that follows the rules sum up to the statistics that the
// real tool printed for its first stream.
func TestCorpusStatistics(t *testing.T) {
	// Two blocks with one index count as one here. A move of an unknown block is an
	// allocation, which the tool leaves out.
	odd := map[string]bool{"h_dupindex": true, "h_unknownindex": true}
	for _, path := range traces(t) {
		name := filepath.Base(path)
		stats := oracle(t, path, "stats")
		want := map[string]string{}
		for _, m := range statsLine.FindAllStringSubmatch(string(contents(t, stats)), -1) {
			want[m[1]] = m[2] + " " + m[3]
		}
		if len(want) == 0 {
			continue // the tool failed
		}
		r, err := mtrc.NewReader(bytes.NewReader(contents(t, path+".trace")), mtrc.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := sums(t, r)
		for what := range got {
			if want[what] == "" {
				t.Errorf("%s: the statistics have no line %q", name, what)
			}
		}
		if maps.Equal(got, want) == odd[name] {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// sums counts like mptrace, by address.
func sums(t *testing.T, r trace.Reader) map[string]string {
	t.Helper()
	count, bytes := map[string]uint64{}, map[string]uint64{}
	live := map[uint64]uint64{} // by index
	add := func(what string, size uint64) { count[what]++; bytes[what] += size }
	var rec trace.Record
	var err error
	for err = r.ReadRecord(&rec); err == nil && rec.Kind != trace.KindEnd; err = r.ReadRecord(&rec) {
		c := &rec.Call
		switch rec.Kind {
		case trace.KindHeapGrow:
			add(map[bool]string{false: "reserved", true: "internal"}[rec.HeapGrow.Internal], rec.HeapGrow.Size)
		case trace.KindCall:
			if c.Op != trace.OpAlloc {
				add("freed", live[c.Index])
				delete(live, c.Index)
			}
			if c.Op != trace.OpFree {
				add("allocated", c.Size)
				live[c.Index] = c.Size
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range live {
		add("unfreed", size)
	}
	text := map[string]string{}
	for _, what := range []string{"allocated", "freed", "unfreed", "reserved", "internal"} {
		text[what] = fmt.Sprint(count[what], " ", bytes[what])
	}
	return text
}
