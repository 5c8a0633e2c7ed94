package window

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// For any division into reads, the input is returned completely and in order.
func TestWindow(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 20)
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)),
		"halves": iotest.HalfReader(strings.NewReader(text)), "end with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		w := New(r, 8)
		var got []byte
		for n := 1; w.Have(n); n = n%37 + 1 {
			got = append(got, w.Bytes()[:n]...)
			w.Skip(n)
			if last := w.Last(n); !bytes.Equal(last, got[len(got)-n:]) || w.Offset() != int64(len(got)) {
				t.Fatalf("%s: %q at %d, want the end of %q", name, last, w.Offset(), got)
			}
		}
		if got = append(got, w.Bytes()...); string(got) != text || !errors.Is(w.Err(), io.EOF) || w.More() {
			t.Errorf("%s: %q, %v", name, got, w.Err())
		}
	}
}

// Only existing input takes memory, and nothing is read before it is needed.
func TestWindowReads(t *testing.T) {
	w := New(strings.NewReader("four"), 8)
	if w.Have(1<<30) || cap(w.Bytes()) > 16 {
		t.Errorf("%d bytes for an input of four", cap(w.Bytes()))
	}
	in := strings.NewReader("0123456789")
	w = New(iotest.OneByteReader(in), 8)
	if !w.Have(3) || in.Len() != 7 {
		t.Errorf("%d bytes are left, want 7", in.Len())
	}
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func TestWindowErrors(t *testing.T) {
	if w := New(nothing{}, 8); w.Have(1) || !errors.Is(w.Err(), io.ErrNoProgress) {
		t.Errorf("an input without data: %v", w.Err())
	}
	broken := errors.New("broken")
	w := New(iotest.ErrReader(broken), 8)
	if w.Have(1) || !errors.Is(w.Err(), broken) {
		t.Errorf("%v", w.Err())
	}
}
