package binio_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"rtrace-bpf/internal/binio"
)

// limited takes a number of writes and fails at the next.
type limited struct {
	bytes.Buffer
	writes int
}

var errFull = errors.New("full")

func (w *limited) Write(b []byte) (int, error) {
	if w.writes--; w.writes < 0 {
		return 0, errFull
	}
	return w.Buffer.Write(b)
}

func TestOutput(t *testing.T) {
	var w limited
	w.writes = 1
	o := binio.NewOutput(&w, "abc", 16)
	o.Buf = append(o.Buf, "small"...)
	if err := o.Pass(); err != nil || w.Len() != 0 {
		t.Errorf("a small buffer is written: %d bytes, %v", w.Len(), err)
	}
	o.Buf = append(o.Buf, make([]byte, 1<<16)...)
	if err := o.Pass(); err != nil || w.Len() != 5+1<<16 || len(o.Buf) != 0 {
		t.Errorf("%d bytes are written and %d left, %v", w.Len(), len(o.Buf), err)
	}
	o.Buf = append(o.Buf, 'x')
	for range 2 {
		if err := o.Flush(); !errors.Is(err, errFull) || !errors.Is(o.Err(), errFull) || !strings.HasPrefix(err.Error(), "writing abc: ") {
			t.Errorf("flush on a full disk: %v", err)
		}
	}
	if err := o.Close(); !errors.Is(err, errFull) {
		t.Errorf("close on a full disk: %v", err)
	}
}

func TestOutputClosed(t *testing.T) {
	w := limited{writes: 1}
	o := binio.NewOutput(&w, "abc", 0)
	o.Buf = append(o.Buf, 'x')
	for range 2 {
		if err := o.Close(); err != nil || w.String() != "x" {
			t.Errorf("%q, %v", w.String(), err)
		}
	}
	if o.Err() == nil || o.Flush() == nil || o.Pass() == nil {
		t.Error("it is still open")
	}
}
