package dumptext

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"rtrace-bpf/internal/window"
	"rtrace-bpf/trace"
)

func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := Line{W: &out}
	l.Start(0x1f, 7, "WORD")
	l.Key("n")
	l.Text = append(l.Text, '1')
	l.Hex("data", []byte{0xab})
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	l.Start(0x123456789, 1234567, "W")
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	in := window.New(strings.NewReader(strings.Repeat("x", 65)), 8)
	if err := l.Rest(&in); err != nil {
		t.Fatal(err)
	}
	want := "0000001f     7 WORD n=1 data=ab\n123456789 1234567 W\n" +
		"00000000    64 RAW data=" + strings.Repeat("78", 64) + "\n00000040     1 RAW data=78\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	broken := errors.New("broken")
	in = window.New(iotest.ErrReader(broken), 8)
	if err := l.Rest(&in); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// The bytes before an error are written, and the error has its offset.
func TestUndump(t *testing.T) {
	broken := errors.New("broken")
	parse := func(line string) ([]byte, error) {
		if line == "bad" {
			return nil, broken
		}
		return []byte(strings.ToUpper(line)), nil
	}
	for name, tt := range map[string]struct {
		in     io.Reader
		out    string
		offset int64 // -1 without an error in the text
		want   error
	}{
		"whole":       {strings.NewReader("ab\n\ncd"), "ABCD", -1, nil},
		"error":       {strings.NewReader("ab\nbad\ncd\n"), "AB", 3, broken},
		"long line":   {strings.NewReader("ab\n" + strings.Repeat("x", 5000)), "AB", 3, trace.ErrLimit},
		"input fails": {io.MultiReader(strings.NewReader("ab\nba"), iotest.ErrReader(broken)), "AB", -1, broken},
	} {
		var out bytes.Buffer
		err := Undump(&out, tt.in, "test", 4096, parse)
		syntax, ok := errors.AsType[*trace.SyntaxError](err)
		if out.String() != tt.out || !errors.Is(err, tt.want) || ok != (tt.offset >= 0) || ok && syntax.Offset != tt.offset {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}
