package mtrc_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

func undump(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := mtrc.Undump(&out, strings.NewReader(text)); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out.Bytes()
}

func dump(data []byte) (string, error) {
	var out strings.Builder
	err := mtrc.Dump(&out, bytes.NewReader(data), mtrc.Options{})
	return out.String(), err
}

// Undump restores every byte of every file from its dump.
func TestDumpCorpus(t *testing.T) {
	for _, path := range traces(t) {
		data := contents(t, path+".trace")
		text, err := dump(data)
		name := filepath.Base(path)
		if wrong := name == "h_notrailer" || name == "h_v10600"; (err != nil) != wrong {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(undump(t, text), data) {
			t.Errorf("%s: its dump stands for other bytes", name)
		}
		if name != "h_v10600" && strings.Count(text, " RAW ") > 1 {
			t.Errorf("%s: not everything is in words:\n%s", name, text)
		}
	}
}

// The lines on the format's page are those of a dump.
func TestDumpLines(t *testing.T) {
	data := little + "I\x80\x20\x80\x80\x01" + "A\x01\x90\x20\x0a\x05\x82f \"x\xff\x00\x81file.c\x00\x07" +
		"R\x01\x20\x8b\x80\x00\x05\x02\x01\x07" + "F\x01\x05\x02\x00\x07MTRC" +
		"MTRC\x00\x00\x00\x01\x00\x00\x28\x3cF\x01MTRCxy"
	_, page, _ := strings.Cut(string(contents(t, "../../docs/formats/mtrc.md")), "\n## The dump\n")
	var want string
	for line := range strings.Lines(page) {
		if line, ok := strings.CutPrefix(line, "    "); ok {
			want += line
		}
	}
	got, err := dump([]byte(data))
	if err != nil || got != want {
		t.Errorf("%v: %s", err, testutil.FirstDifference(got, want))
	}
	if again := undump(t, got); string(again) != data {
		t.Errorf("%q, want %q", again, data)
	}
	// The header of 64-bit Windows, comments, and other white space.
	again := undump(t, "# by hand\n\n0 0 HEADER  words=8 endian=little version=10501/4 # Windows\r\n0 0 TRAILER\n")
	if string(again) != "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29\x00\x00MTRC" {
		t.Errorf("%q", again)
	}
}

func TestUndumpErrors(t *testing.T) {
	const head = "0 0 HEADER words=8 endian=little version=10501\n"
	for _, tt := range []struct{ line, err string }{
		{"0 0 HEADER words=5 endian=little version=10501", "words"},
		{"0 0 HEADER words=8 endian=middle version=10501", "endian"},
		{"0 0 HEADER words=8 endian=little version=x", "version"},
		{"0 0 HEADER words=8", "endian="},
		{"0 0 X index=1", "\"X\" is no record"},
		{"0 0 CALL index=1", "\"CALL\" is no record"},
		{"0 0", "\"\" is no record"},
		{"0 0 H address=1", "size="},
		{"0 0 H address=z size=1", "field address: number \"z\""},
		{"0 0 H address=1 size=1 more", "at the end of the line"},
		{"0 0 H address=128/1 size=1", "bytes"},
		{"0 0 H address=1/11 size=1", "bytes"},
		{"0 0 F index=1 thread=1 function=128 file=0 line=0", "field function: id"},
		{"0 0 F index=1 thread=1 function=1:x file=0 line=0", "name should be"},
		{"0 0 F index=1 thread=1 function=1:\"a\\x00b\" file=0 line=0", "name \"a"},
		{"0 0 RAW data=xy", "hexadecimal"},
		{"0 0 RAW", "data="},
	} {
		var out bytes.Buffer
		err := mtrc.Undump(&out, strings.NewReader(head+tt.line+"\n"))
		syntax, ok := errors.AsType[*trace.SyntaxError](err)
		if !ok || !errors.Is(err, trace.ErrMalformed) || syntax.Offset != int64(len(head)) || syntax.Format != "mtrc dump" || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v", tt.line, err)
		}
		if out.String() != little {
			t.Errorf("%s: %q is written", tt.line, out.Bytes())
		}
	}
	err := mtrc.Undump(new(bytes.Buffer), strings.NewReader(head+strings.Repeat("x", 9<<20)))
	if !errors.Is(err, trace.ErrLimit) {
		t.Errorf("a long line: %v", err)
	}
}

// FuzzDump dumps any input and restores every byte.
func FuzzDump(f *testing.F) {
	for _, path := range traces(f) {
		if data := contents(f, path+".trace"); len(data) < 600 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := dump(data)
		if err != nil {
			checkError(t, err, data)
		}
		if again := undump(t, text); !bytes.Equal(again, data) {
			t.Fatalf("%q becomes\n%swhich stands for %q", data, text, again)
		}
	})
}
