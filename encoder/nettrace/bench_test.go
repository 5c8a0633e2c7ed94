package nettrace_test

import (
	"bytes"
	"io"
	"testing"

	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/trace"
)

// calls returns the calls of a program again and again, each time at a later time.
type calls struct {
	records []trace.Record
	last    uint64
	time    int64
}

func newCalls(sites int) *calls {
	c := &calls{time: 1e9}
	for _, r := range program(2000, sites, 4) {
		if r.Kind == trace.KindCall {
			c.records = append(c.records, r)
		}
	}
	return c
}

// next returns the next call.
func (c *calls) next() *trace.Record {
	r := &c.records[c.last%uint64(len(c.records))]
	c.last++
	c.time += 333
	r.Call.Seq, r.Time = c.last, c.time
	if r.Call.Op == trace.OpMove {
		r.Call.EntryTime = c.time - 100
	}
	return r
}

func BenchmarkWriter(b *testing.B) {
	for _, tt := range []struct {
		name  string
		sites int
		opts  nettrace.Options
	}{
		{"v4/sites=20", 20, nettrace.Options{}},
		{"v4/sites=2000", 2000, nettrace.Options{}},
		{"v6/sites=2000", 2000, nettrace.Options{Version: nettrace.V6}},
		{"alloctick/sites=2000", 2000, nettrace.Options{View: nettrace.ViewAllocTick}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			c := newCalls(tt.sites)
			var out counter
			w, err := nettrace.New(&out, tt.opts)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				for range 1000 {
					if err := w.WriteRecord(c.next()); err != nil {
						b.Fatal(err)
					}
				}
				events += 1000
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			b.ReportMetric(float64(out)/float64(events), "B/event")
		})
	}
}

// counter counts bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// A file has less than a third of the bytes of one in sp-rtrace's format.
func TestSmallerThanSprtrace(t *testing.T) {
	records := program(20000, 2000, 4)
	mine, _ := encode(t, records, nettrace.Options{})
	var other bytes.Buffer
	w, err := sprtrace.New(&other, sprtrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.WriteRecord(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("nettrace %d bytes, sp-rtrace %d, of %d records", len(mine), other.Len(), len(records))
	if 3*len(mine) > other.Len() {
		t.Errorf("nettrace %d bytes, sp-rtrace %d", len(mine), other.Len())
	}
}

// Writing a call like earlier ones does not allocate.
func TestWritingDoesNotAllocate(t *testing.T) {
	for _, version := range []int{nettrace.V4, nettrace.V6} {
		c := newCalls(20)
		w, err := nettrace.New(io.Discard, nettrace.Options{Version: version})
		if err != nil {
			t.Fatal(err)
		}
		for range c.records {
			if err := w.WriteRecord(c.next()); err != nil {
				t.Fatal(err)
			}
		}
		// A block has thousands of calls, and its header is one allocation.
		if n := testing.AllocsPerRun(1000, func() {
			if err := w.WriteRecord(c.next()); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("version %d: %v allocations per call", version, n)
		}
	}
}
