package output

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"rtrace-bpf/decoder/jsonl"
	encoder "rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// naming gives calls a name and notes when it is asked.
type naming struct {
	from trace.Reader
	then func(n int) // is called with the number of calls so far
	n    int
}

func (r *naming) ReadRecord(rec *trace.Record) error {
	err := r.from.ReadRecord(rec)
	if err == nil && rec.Kind == trace.KindCall {
		rec.Call.Caller.Function = "main"
		if r.n++; r.then != nil {
			r.then(r.n)
		}
	}
	return err
}

// line returns a line of progress on a terminal.
func line(w io.Writer) *status.Line { return status.New(status.Options{Out: w, Progress: true}) }

func newDelayed(t *testing.T, to io.Writer, then func(int), hurry <-chan struct{}) *Delayed {
	t.Helper()
	file, err := spool.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Delayed{
		File: file, To: &Writer{encoder: encoder.New(to)}, Path: "FILE", Line: line(new(bytes.Buffer)), Hurry: hurry, Turn: new(sync.Mutex),
		Names: func(r trace.Reader) trace.Reader { return &naming{from: r, then: then} },
	}
}

// fill writes n calls.
func fill(t *testing.T, w trace.Writer, n int) {
	t.Helper()
	for i := range n {
		r := trace.Record{Kind: trace.KindCall, Time: int64(i), Call: trace.Call{Seq: uint64(i + 1), Op: trace.OpAlloc, ID: uint64(i)}}
		if err := w.WriteRecord(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteRecord(&trace.Record{Kind: trace.KindEnd}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// named reads a trace and returns how many calls it has, and how many of those
// that stand first have a name.
func named(t *testing.T, data []byte) (calls, names int) {
	t.Helper()
	records, err := trace.Load(jsonl.New(bytes.NewReader(data), jsonl.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(records) == 0 || records[len(records)-1].Kind != trace.KindEnd {
		t.Fatal("the trace has no end")
	}
	for i, r := range records[:len(records)-1] {
		if r.Call.Seq != uint64(i+1) {
			t.Fatalf("call %d is number %d", i+1, r.Call.Seq)
		}
		if r.Call.Caller.Function != "" && names == i {
			names++
		}
	}
	return len(records) - 1, names
}

func TestDelayed(t *testing.T) {
	var out bytes.Buffer
	w := newDelayed(t, &out, nil, nil)
	fill(t, w, 5000)
	if out.Len() > 0 {
		t.Error("something was encoded too early")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if calls, names := named(t, out.Bytes()); calls != 5000 || names != 5000 {
		t.Errorf("%d calls, %d of them with a name", calls, names)
	}
}

// In a hurry the records are written all the same, without names from the next
// one on.
func TestDelayedInAHurry(t *testing.T) {
	var out bytes.Buffer
	hurry := make(chan struct{})
	w := newDelayed(t, &out, func(n int) {
		if n == 2047 {
			close(hurry)
		}
	}, hurry)
	fill(t, w, 5000)
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "interrupted while writing FILE: the last 2954 of 5001 records are without names") {
		t.Error(err)
	}
	if calls, names := named(t, out.Bytes()); calls != 5000 || names != 2047 {
		t.Errorf("%d calls, %d of them with a name", calls, names)
	}
}

func TestDelayedProgress(t *testing.T) {
	var out, shown bytes.Buffer
	w := newDelayed(t, &out, nil, nil)
	w.Line = line(&shown)
	w.Names = func(r trace.Reader) trace.Reader {
		w.shown = time.Now().Add(-time.Hour)
		return &naming{from: r, then: func(n int) {
			if n == checkEvery {
				w.shown = w.shown.Add(-time.Hour)
			}
		}}
	}
	fill(t, w, 2*checkEvery-1)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(shown.String(), "\r\x1b[K")
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "writing FILE: 0 %") || !strings.HasPrefix(lines[2], "writing FILE: 50 % of 2.0k records") || lines[3] != "" {
		t.Errorf("shown: %q", lines)
	}
}

var errDisk = errors.New("disk is gone")

type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, errDisk }

// An error of the output is returned once.
func TestDelayedOutputFails(t *testing.T) {
	w := newDelayed(t, brokenDisk{}, nil, nil)
	fill(t, w, 5000)
	err := w.Close()
	if !errors.Is(err, errDisk) || strings.Count(err.Error(), errDisk.Error()) != 1 {
		t.Error(err)
	}
}
