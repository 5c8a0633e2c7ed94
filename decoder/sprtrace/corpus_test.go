package sprtrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

const corpus = "../../testdata/corpus/sp-rtrace"

// corpusFiles returns all traces of the corpus.
func corpusFiles(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.rtrace", "synthetic/*.rtrace"} {
		m, err := filepath.Glob(filepath.Join(corpus, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, m...)
	}
	if len(files) < 27 {
		t.Fatalf("%d traces in %s, want at least 27", len(files), corpus)
	}
	return files
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// load decodes data and returns the records before the error, if there is one.
func load(t testing.TB, data []byte, opts Options) (*Reader, []*trace.Record, error) {
	t.Helper()
	d, err := New(bytes.NewReader(data), opts)
	if err != nil {
		return nil, nil, err
	}
	recs, err := trace.Load(d)
	return d, recs, err
}

// render prints records in the order and form of the original's text output, without
// its header line. It handles only what binary traces can hold.
func render(recs []*trace.Record) string {
	var b strings.Builder
	section := func(kind trace.Kind, f func(r *trace.Record)) {
		for _, r := range recs {
			if r.Kind == kind {
				f(r)
			}
		}
	}
	types := map[uint32]string{}
	section(trace.KindResource, func(r *trace.Record) { types[r.Resource.ID] = r.Resource.Type })
	section(trace.KindAttachment, func(r *trace.Record) {
		fmt.Fprintf(&b, "& %s : %s\n", r.Attachment.Name, r.Attachment.Path)
	})
	section(trace.KindHeapInfo, func(r *trace.Record) { renderHeap(&b, &r.HeapInfo, recs) })
	section(trace.KindTracerModule, func(r *trace.Record) {
		m := &r.TracerModule
		fmt.Fprintf(&b, "## tracing module: [%x] %s (%d.%d)\n", m.ID, m.Name, m.Major, m.Minor)
	})
	section(trace.KindContext, func(r *trace.Record) {
		fmt.Fprintf(&b, "@ %x : %s\n", r.Context.ID, r.Context.Name)
	})
	section(trace.KindResource, func(r *trace.Record) {
		mask := uint64(1) << (r.Resource.ID - 1)
		if len(types) == 1 {
			mask = 1
		}
		fmt.Fprintf(&b, "<%x> : %s (%s)", mask, r.Resource.Type, r.Resource.Desc)
		if r.Resource.RefCount {
			b.WriteString(" [refcount]")
		}
		b.WriteByte('\n')
	})
	section(trace.KindMapping, func(r *trace.Record) {
		fmt.Fprintf(&b, ": %s => %#x-%#x\n", r.Mapping.Path, r.Mapping.Start, r.Mapping.End)
	})
	section(trace.KindCall, func(r *trace.Record) { renderCall(&b, r, types) })
	return b.String()
}

func renderCall(b *strings.Builder, r *trace.Record, types map[uint32]string) {
	c := &r.Call
	fmt.Fprintf(b, "%d. ", c.Seq)
	if c.Context != 0 {
		fmt.Fprintf(b, "@%x ", c.Context)
	}
	if ms := r.Time / 1e6; ms != 0 {
		fmt.Fprintf(b, "[%02d:%02d:%02d.%03d] ", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
	}
	b.WriteString(c.Function)
	if typ := types[c.Resource]; typ != "" && len(types) > 1 {
		fmt.Fprintf(b, "<%s>", typ)
	}
	if c.Op == trace.OpAlloc {
		fmt.Fprintf(b, "(%d) = %#x\n", int64(c.Size), c.ID)
	} else {
		fmt.Fprintf(b, "(%#x)\n", c.ID)
	}
	for _, a := range c.Args {
		fmt.Fprintf(b, "\t$%s = %s\n", a.Name, a.Value)
	}
	for _, f := range c.Stack.Frames {
		fmt.Fprintf(b, "\t%#x\n", f)
	}
	if c.Stack.End != trace.StackAbsent {
		b.WriteByte('\n')
	}
}

func renderHeap(b *strings.Builder, h *trace.HeapInfo, recs []*trace.Record) {
	var low, high uint64
	for _, r := range recs {
		if r.Kind == trace.KindCall && r.Call.Op == trace.OpAlloc {
			if low == 0 || r.Call.ID < low {
				low = r.Call.ID
			}
			high = max(high, r.Call.ID)
		}
	}
	fmt.Fprintf(b, "## heap status information:\n##   heap bottom %#x\n##   heap top %#x\n", h.Bottom, h.Top)
	fmt.Fprintf(b, "##   lowest block %#x\n##   highest block %#x\n", low, high)
	for _, l := range []struct {
		text string
		v    uint64
	}{
		{"non-mapped space allocated from system", h.Arena},
		{"count of free chunks", h.OrdBlks},
		{"count of freed fastbin blocks", h.SmBlks},
		{"count of mapped regions", h.HBlks},
		{"space in mapped regions", h.HBlkHd},
		{"maximum total allocated space", h.UsmBlks},
		{"space available in freed fastbin blocks", h.FsmBlks},
		{"total allocated space, both normal and mmapped", h.UordBlks},
		{"total free space", h.FordBlks},
		{"space ideally releasable via malloc_trim", h.KeepCost},
	} {
		fmt.Fprintf(b, "##   %s %d\n", l.text, int64(l.v))
	}
}

// body returns the output of the original, without the header line.
func body(t *testing.T, name string) string {
	t.Helper()
	text := string(readFile(t, name))
	_, rest, ok := strings.Cut(text, "\n")
	if !ok {
		t.Fatalf("%s has no header line", name)
	}
	return rest
}

// plainOf returns the file with the original's output for a trace, or "" if there is
// none.
func plainOf(file string) string {
	base := strings.TrimSuffix(file, ".rtrace")
	for _, name := range []string{base + ".plain.txt", filepath.Join(corpus, "out", filepath.Base(base), "plain.txt")} {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return ""
}

// Legacy reading gives what the original printed, for every trace.
func TestLegacyEqualsOriginal(t *testing.T) {
	compared := 0
	for _, file := range corpusFiles(t) {
		plain := plainOf(file)
		if plain == "" {
			continue
		}
		compared++
		t.Run(filepath.Base(file), func(t *testing.T) {
			d, recs, err := load(t, readFile(t, file), Options{Legacy: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(body(t, plain), render(recs)); diff != "" {
				t.Errorf("differs from the original (-original +ours):\n%s", diff)
			}
			var want string
			if data, err := os.ReadFile(strings.TrimSuffix(file, ".rtrace") + ".stderr.txt"); err == nil {
				want = string(data)
			}
			var got strings.Builder
			for _, w := range d.Warnings() {
				if want != "" { // only some files have the original's stderr
					fmt.Fprintf(&got, "WARNING: %s\n", w)
				}
			}
			if got.String() != want {
				t.Errorf("warnings %q, want %q", got.String(), want)
			}
		})
	}
	if compared < 25 {
		t.Errorf("only %d traces have an output of the original", compared)
	}
}

// tolerant lists where tolerant reading gives more than the original does, and what.
var tolerant = map[string]struct {
	like    string // the trace that it must equal instead
	dialect string
	stats   Stats
	cut     bool
}{
	"argsafter":     {like: "out/file-args/plain.txt"},
	"heapinfo":      {like: "synthetic/hinf64.plain.txt"},
	"multi-docstr":  {like: "out/multi/plain.txt", dialect: "2.0, exact strings"},
	"multi-unk":     {like: "out/multi/plain.txt", stats: Stats{Unknown: 5}},
	"multi-v12":     {dialect: "1.2 size first"},
	"multi-v14":     {dialect: "1.4 size first"},
	"c-leaks-32":    {dialect: "2.0, 32-bit"},
	"c-leaks-trunc": {cut: true},
}

// Tolerant reading of a flawed trace gives what the original prints for the well-formed
// trace.
func TestTolerant(t *testing.T) {
	for _, file := range corpusFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".rtrace")
		t.Run(name, func(t *testing.T) {
			want := tolerant[name]
			plain := plainOf(file)
			if want.like != "" {
				plain = filepath.Join(corpus, want.like)
			}
			if want.dialect == "" {
				want.dialect = "2.0"
			}
			data := readFile(t, file)
			d, recs, err := load(t, data, Options{})
			if want.cut {
				var syntax *trace.SyntaxError
				if !errors.Is(err, trace.ErrTruncated) || !errors.As(err, &syntax) {
					t.Fatalf("error %v, want ErrTruncated", err)
				}
				if got := d.Stats().Bytes; got != syntax.Offset {
					t.Errorf("%d bytes of whole packets, but the error is at %d", got, syntax.Offset)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if plain != "" {
				got := render(recs)
				want := body(t, plain)
				if name == "heapinfo" { // 32 bits of the bounds are lost
					want = strings.NewReplacer("0x557e926d8000", "0x926d8000", "0x557e926f9000", "0x926f9000").Replace(want)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("differs (-want +got):\n%s", diff)
				}
			}
			got := d.Stats()
			if got.Dialect != want.dialect {
				t.Errorf("dialect %q, want %q", got.Dialect, want.dialect)
			}
			if name == "multi-unk" && got.Unknown == 0 {
				t.Error("no unknown packet was counted")
			}
			if name != "multi-unk" && got.Unknown+got.Malformed+got.Orphans != 0 {
				t.Errorf("odd packets in a whole trace: %+v", got)
			}
			if !want.cut && got.Bytes != int64(len(data)) {
				t.Errorf("%d bytes read of %d", got.Bytes, len(data))
			}
			if w := d.Warnings(); len(w) != 0 {
				t.Errorf("warnings %q", w)
			}
		})
	}
}

// A trace cut at any byte yields the records of its whole packets, then ErrTruncated,
// or io.EOF at the end of a packet. Legacy reading ends with io.EOF.
func TestCutEverywhere(t *testing.T) {
	for _, name := range []string{"file-args", "synthetic/multi-v12", "c-leaks-32", "heapinfo"} {
		t.Run(name, func(t *testing.T) {
			data := readFile(t, filepath.Join(corpus, name+".rtrace"))
			_, whole, err := load(t, data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			ends := packetEnds(t, data)
			for n := range len(data) {
				d, recs, err := load(t, data[:n], Options{})
				clean := slices.Contains(ends, n)
				if clean && err != nil || !clean && !errors.Is(err, trace.ErrTruncated) {
					t.Fatalf("cut at %d: error %v, packet end: %v", n, err, clean)
				}
				if n < ends[0] {
					continue // without a handshake there is no reader
				}
				i, _ := slices.BinarySearch(ends, n+1)
				if got := d.Stats().Bytes; got != int64(ends[i-1]) {
					t.Fatalf("cut at %d: %d bytes of whole packets, want %d", n, got, ends[i-1])
				}
				comparePrefix(t, n, recs, whole)
				if _, recs, err = load(t, data[:n], Options{Legacy: true}); err != nil {
					t.Fatalf("cut at %d: legacy error %v", n, err)
				}
				if len(recs) == 0 {
					t.Fatalf("cut at %d: legacy reading lost everything", n)
				}
			}
		})
	}
}

// comparePrefix checks that whole begins with recs. The last call may lack what follows
// it.
func comparePrefix(t *testing.T, n int, recs, whole []*trace.Record) {
	t.Helper()
	if len(recs) > len(whole) {
		t.Fatalf("cut at %d: %d records, whole trace has %d", n, len(recs), len(whole))
	}
	// The records before the last two were compared at a smaller cut.
	for i := max(0, len(recs)-2); i < len(recs); i++ {
		r, want := recs[i], whole[i]
		if i == len(recs)-1 && r.Kind == trace.KindCall {
			want = want.Clone()
			if r.Call.Stack.End == trace.StackAbsent {
				want.Call.Stack = trace.Stack{}
			}
			if r.Call.Args == nil {
				want.Call.Args = nil
			}
		}
		if diff := cmp.Diff(payload(want), payload(r)); diff != "" {
			t.Fatalf("cut at %d: record %d differs (-want +got):\n%s", n, i, diff)
		}
	}
}

// payload returns a copy of r with only the payload that its kind uses.
func payload(r *trace.Record) *trace.Record {
	p := &trace.Record{Kind: r.Kind, Time: r.Time, PID: r.PID, TID: r.TID, CPU: r.CPU}
	switch r.Kind {
	case trace.KindHeader:
		p.Header = r.Header
	case trace.KindProcess:
		p.Process = r.Process
	case trace.KindTracerModule:
		p.TracerModule = r.TracerModule
	case trace.KindResource:
		p.Resource = r.Resource
	case trace.KindContext:
		p.Context = r.Context
	case trace.KindMapping:
		p.Mapping = r.Mapping
	case trace.KindCall:
		p.Call = r.Call
	case trace.KindHeapInfo:
		p.HeapInfo = r.HeapInfo
	case trace.KindAttachment:
		p.Attachment = r.Attachment
	case trace.KindOpaque:
		p.Opaque = r.Opaque
	}
	return p
}

// packetEnds returns the offsets at which packets end.
func packetEnds(t *testing.T, data []byte) []int {
	t.Helper()
	w, err := NewWalker(bytes.NewReader(data), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		ends []int
		p    Packet
	)
	for {
		if err := w.Next(&p); errors.Is(err, io.EOF) {
			return ends
		} else if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(p.Offset)+len(p.Raw))
	}
}

// TestSkim: without calls, everything else is as with them.
func TestSkim(t *testing.T) {
	for _, file := range corpusFiles(t) {
		in := readFile(t, file)
		read := func(skim bool) (records []*trace.Record, ending error) {
			d, err := New(bytes.NewReader(in), Options{Skim: skim})
			if err != nil {
				t.Fatal(err)
			}
			all, ending := trace.Load(d)
			for _, r := range all {
				if r.Kind == trace.KindCall {
					if skim {
						t.Fatalf("%s: a call", file)
					}
					continue
				}
				r.Call = trace.Call{} // left from an earlier use
				records = append(records, r)
			}
			return records, ending
		}
		want, wantErr := read(false)
		got, err := read(true)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: error %v, want %v", file, err, wantErr)
		}
	}
	for _, o := range []Options{{Skim: true, Strict: true}, {Skim: true, Legacy: true}} {
		if _, err := New(strings.NewReader(""), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
