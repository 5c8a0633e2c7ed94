package jsontext_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"rtrace-bpf/internal/jsontext"
)

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{jsontext.AppendKey(nil, "k"), `,"k":`},
		{jsontext.AppendInt(nil, "k", math.MinInt64), `,"k":-9223372036854775808`},
		{jsontext.AppendInt(nil, "k", 0), ``},
		{jsontext.AppendUint(nil, "k", math.MaxUint64), `,"k":18446744073709551615`},
		{jsontext.AppendUint(nil, "k", 0), ``},
		{jsontext.AppendAddress(nil, "k", 0), ``},
		{jsontext.AppendAddress(nil, "k", 0x1f0), `,"k":"0x1f0"`},
		{jsontext.AppendHex(nil, 0), `"0x0"`},
		{jsontext.AppendHex(nil, 1<<63), `"0x8000000000000000"`},
		{jsontext.AppendBool(nil, "k", false), ``},
		{jsontext.AppendBool(nil, "k", true), `,"k":true`},
		{jsontext.AppendText(nil, "k", ""), ``},
		{jsontext.AppendText(nil, "k", "a\"b"), `,"k":"a\"b"`},
		{jsontext.AppendEnum(nil, "k", 0, []string{"a", "b"}), ``},
		{jsontext.AppendEnum(nil, "k", 1, []string{"a", "b"}), `,"k":"b"`},
		{jsontext.AppendEnum(nil, "k", 2, []string{"a", "b"}), `,"k":2`},
		{jsontext.AppendBytes(nil, "k", nil), ``},
		{jsontext.AppendBytes(nil, "k", []byte{0, 0xff}), `,"k":"00ff"`},
		{jsontext.AppendString(nil, ""), `""`},
		{jsontext.AppendString(nil, "\x80é\xff\x00"), `"\udc80é\udcff\u0000"`},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}

// value reads line as one value by skipping it.
func skip(line []byte) error {
	c := jsontext.NewCursor(true)
	c.Reset(line)
	c.Skip()
	c.End()
	return c.Err()
}

var samples = []string{
	`{}`, `[]`, `[[],{}]`, `{"a":[1,-2.5e+7,"x\n\u00e9\ud834\udd1e",true,false,null],"b":{"c":{}}}`, ` [ 1 , 2 ] `, `0`, `-0.0E-1`, `"é"`,
	`{"a" 1}`, `{"a":1,}`, `[1,]`, `[1 2]`, `01`, `1.`, `.5`, `-`, `1e`, `tru`, `nul`, `"\x"`, `"\u12"`, `"`, `{"a":1`, `[}`, `{]`, `{1:2}`, ``, `1 2`, "\"\x01\"", `+1`, `1e5.3`,
}

// The cursor agrees with the standard library on valid JSON.
func TestSkip(t *testing.T) {
	for _, s := range samples {
		if got, want := skip([]byte(s)) == nil, json.Valid([]byte(s)); got != want {
			t.Errorf("%q: valid %v (%v), want %v", s, got, skip([]byte(s)), want)
		}
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := skip(deep(64)); err != nil {
		t.Errorf("64 deep: %v", err)
	}
	if err := skip(deep(65)); !errors.Is(err, jsontext.ErrDepth) {
		t.Errorf("65 deep: %v", err)
	}
}

func FuzzSkip(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		err := skip(line)
		if err == nil && !json.Valid(line) {
			t.Fatal("invalid JSON is accepted")
		}
		// What else is rejected: depth, text that is not UTF-8, halves of
		// characters.
		if err != nil && json.Valid(line) && !errors.Is(err, jsontext.ErrDepth) &&
			!strings.Contains(err.Error(), "UTF-8") && !strings.Contains(err.Error(), "half a character") {
			t.Fatalf("refused: %v", err)
		}
	})
}

func FuzzString(f *testing.F) {
	f.Add("plain")
	f.Add("\xed\xb2\x80\xf0\x9d\x84\x1e\\\"\x00")
	f.Fuzz(func(t *testing.T, s string) {
		line := jsontext.AppendString(nil, s)
		c := jsontext.NewCursor(true)
		c.Reset(line)
		if got := c.String(); got != s || c.Err() != nil {
			t.Fatalf("%q is written as %s and read as %q, %v", s, line, got, c.Err())
		}
		if c.End(); c.Err() != nil || !json.Valid(line) {
			t.Fatalf("%q is written as %s", s, line)
		}
	})
}

// The error is the first one with its offset, and every loop ends after it.
func TestStickyError(t *testing.T) {
	c := jsontext.NewCursor(false)
	c.Reset([]byte(`{"a":x,"b":1}`))
	n := 0
	for c.Open('{'); c.More('}'); n++ {
		c.Key()
		c.Uint(10)
	}
	first := c.Err()
	if n != 1 || first == nil || c.Offset() != 5 {
		t.Errorf("%d members, %v at %d", n, first, c.Offset())
	}
	c.Fail(0, errors.New("another"))
	c.Seek(0)
	if c.More('}') || c.Err() != first || c.Offset() != 5 || c.Uint(1) != 0 || c.Text() != nil || c.Bool() {
		t.Errorf("then %v at %d", c.Err(), c.Offset())
	}
	if c.Reset([]byte("  ")); !c.Blank() || c.Err() != nil {
		t.Error("Reset keeps the error")
	}
}

func TestLines(t *testing.T) {
	text := "a\n\nbcd\n" + strings.Repeat("x", 100_000) + "\nlast"
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "half": iotest.HalfReader(strings.NewReader(text)), "one byte": iotest.OneByteReader(strings.NewReader(text)),
	} {
		l := jsontext.NewLines(r, 200_000)
		var got []byte
		for {
			line, offset, err := l.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || offset != int64(len(got)) || bytes.IndexByte(line[:len(line)-1], '\n') >= 0 {
				t.Fatalf("%s: %.20q at %d, %v", name, line, offset, err)
			}
			got = append(got, line...)
		}
		if string(got) != text || !l.Ended() || l.Offset() != int64(len(text)) {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
	l := jsontext.NewLines(strings.NewReader("a\n"+strings.Repeat("x", 200_000)), 1000)
	_, _, err := l.Next()
	if _, offset, long := l.Next(); err != nil || !errors.Is(long, jsontext.ErrLong) || offset != 2 {
		t.Errorf("%v, then %v at %d", err, long, offset)
	}
}

// Repeated texts are stored once; long ones are not stored.
func TestStringsAreKept(t *testing.T) {
	c := jsontext.NewCursor(false)
	line := []byte(`"malloc"`)
	read := func() {
		c.Reset(line)
		if c.String() == "" {
			t.Fatal(c.Err())
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations", n)
	}
	c.Reset([]byte(`"one" "two"`))
	one := c.String()
	if two := c.String(); one != "one" || two != "two" {
		t.Errorf("%q %q", one, two)
	}
}
