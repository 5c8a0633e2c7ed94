package mtrc_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	decoder "rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/encoder/mtrc"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// The model of the real tool prints what the real tool printed, including its errors,
// for every file of the corpus that has a table.
func TestRealToolModel(t *testing.T) {
	compared, failed := 0, 0
	for _, folder := range []string{"real", "handmade"} {
		for _, path := range files(t, folder) {
			name := strings.TrimSuffix(path, ".trace")
			exit, err := os.ReadFile(name + ".asis64.exit.txt")
			if err != nil {
				continue
			}
			rows := testutil.TraceRows{Words: 8}
			var tool realTool
			ends := tool.read(bytes.NewReader(contents(t, path)), rows.Add)
			code, message, _ := strings.Cut(string(exit), "\n")
			switch {
			case code == "exit=134" || code == "exit=139":
				continue // the tool crashes at ids that the model accepts
			case code == "exit=0" && ends != nil,
				code == "exit=1" && (ends == nil || !strings.Contains(message, ends.Error()) && !errors.Is(ends, errLost)):
				t.Errorf("%s: the model ends with %v, the tool with %s", name, ends, exit)
			}
			table := name + ".asis64.table.txt"
			if _, err := os.Stat(table); err != nil {
				continue // dropped because of its size
			}
			compared++
			want := testutil.MptraceTable(t, table)
			if errors.Is(ends, errLost) {
				failed++
				if !strings.HasPrefix(want, rows.String()) || rows.String() == "" {
					t.Errorf("%s: %s", name, testutil.FirstDifference(rows.String(), want))
				}
				continue
			}
			if rows.String() != want {
				t.Errorf("%s: %s", name, testutil.FirstDifference(rows.String(), want))
			}
		}
	}
	if compared < 20 || failed < 1 {
		t.Errorf("%d tables compared, of which %d were misread", compared, failed)
	}
}

// large is a trace.Reader of a process with typical addresses: the heap, libraries and
// large blocks far apart, pthread ids, blocks over 2 GiB, 200 functions.
type large struct {
	calls, n int
	live     []uint64
}

func (l *large) ReadRecord(r *trace.Record) error {
	*r = trace.Record{Kind: trace.KindCall, PID: 7}
	switch {
	case l.n == 0:
		r.Kind, r.Header = trace.KindHeader, trace.Header{PointerSize: 8}
	case l.n == 1:
		r.Kind = trace.KindHeapGrow
		r.HeapGrow = trace.HeapGrow{Address: 0x55e8dc990000, Size: 64 << 20}
	case l.n >= l.calls:
		r.Kind = trace.KindEnd
		if l.n > l.calls {
			return errEnd
		}
	default:
		i := uint64(l.n)
		c := &r.Call
		c.Function, c.Thread = "malloc", 0x7f39fc036640+i%5<<23
		c.Caller = trace.Caller{Function: fmt.Sprintf("function_%d", i%200), File: fmt.Sprintf("src/file_%d.c", i%41), Line: i % 3000}
		if len(l.live) > 500 || i%3 == 2 && len(l.live) > 0 {
			k := int(i*2654435761) % len(l.live)
			c.Op, c.ID = trace.OpFree, l.live[k]
			l.live[k] = l.live[len(l.live)-1]
			l.live = l.live[:len(l.live)-1]
			break
		}
		c.Op, c.Size = trace.OpAlloc, 8+i%4000
		switch {
		case i%50_000 == 0:
			c.ID, c.Size = 0x7e0000000000+i<<32, 3<<30
		case i%100 == 0:
			c.ID, c.Size = 0x7f3900000010+i%30_000<<22, 3<<20
		case i%2 == 0:
			c.ID = 0x7f3800000010 + i%20_000*4096
		default:
			c.ID = 0x55e8dc990010 + i%16_000*4096
		}
		for _, id := range l.live {
			if id == c.ID {
				c.Op, c.Size = trace.OpNone, 0 // the address is in use
			}
		}
		if c.Op == trace.OpAlloc {
			l.live = append(l.live, c.ID)
		}
	}
	l.n++
	return nil
}

var errEnd = fmt.Errorf("end of the test's trace")

func writeLarge(t *testing.T, calls int, o mtrc.Options) ([]byte, mtrc.Stats) {
	t.Helper()
	var out bytes.Buffer
	w, err := mtrc.New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Copy(w, &large{calls: calls}); !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rules(o, w.Stats()).Check(t, out.Bytes())
	return out.Bytes(), w.Stats()
}

// The unmodified tool reads a large file in the legacy form correctly, and loses its
// place in the normal form of the same trace.
func TestRealToolReadsLegacy(t *testing.T) {
	const calls = 650_000
	data, stats := writeLarge(t, calls, mtrc.Options{Legacy: true})
	s, err := decoder.NewScanner(bytes.NewReader(data), decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	var (
		tool   realTool
		want   wire.Event
		events int
	)
	err = tool.read(bytes.NewReader(data), func(got *wire.Event) {
		if err := s.Next(&want); err != nil || *got != want {
			t.Fatalf("event %d is read as %+v, want %+v (%v)", events, got, want, err)
		}
		events++
	})
	if err != nil || events < 600_000 {
		t.Errorf("%d events, %v", events, err)
	}
	if stats.ClampedSizes == 0 || stats.FoldedThreads == 0 || stats.Shared == 0 {
		t.Errorf("the trace has too few large numbers: %+v", stats)
	}

	normal, _ := writeLarge(t, calls, mtrc.Options{})
	s, err = decoder.NewScanner(bytes.NewReader(normal), decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	right, wrong := 0, 0
	err = tool.read(bytes.NewReader(normal), func(got *wire.Event) {
		if err := s.Next(&want); err == nil && *got == want {
			right++
		} else {
			wrong++
		}
	})
	if !errors.Is(err, errLost) || wrong == 0 {
		t.Errorf("the normal form: %v after %d events, of which %d were wrong", err, right+wrong, wrong)
	}
}

// Real files in the legacy form have the same events, except for what the form cannot
// hold.
func TestLegacyOfRealFiles(t *testing.T) {
	for _, path := range files(t, "real") {
		data := contents(t, path)
		legacy, stats := encode(t, read(t, data), mtrc.Options{Legacy: true})
		headers, got := events(t, legacy)
		_, want := events(t, data)
		if headers[0].Words != 8 || headers[0].Version != wire.Version || len(got) != len(want) {
			t.Errorf("%s: %+v, %d events, want %d", filepath.Base(path), headers[0], len(got), len(want))
			continue
		}
		for i := range got {
			g, w := got[i], want[i]
			for _, n := range []uint64{g.Index, g.Address, g.Size, g.Source.Thread, g.Source.Line} {
				if n >= wire.LegacyLimit {
					t.Fatalf("%s: number %d in event %d", filepath.Base(path), n, i)
				}
			}
			if g.Address&0xfffff != w.Address&0xfffff {
				t.Fatalf("%s: address %#x became %#x", filepath.Base(path), w.Address, g.Address)
			}
			w.Address, w.Source.Thread = g.Address, g.Source.Thread
			if g != w {
				t.Fatalf("%s: event %d: %+v, want %+v", filepath.Base(path), i, g, w)
			}
		}
		if stats.Shared+stats.ClampedSizes+stats.ClampedLines+stats.Renumbered != 0 {
			t.Errorf("%s: %+v", filepath.Base(path), stats)
		}
	}
}
