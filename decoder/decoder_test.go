package decoder_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// calls returns a trace of n calls, with stacks that do not compress well.
func calls(n int) []*trace.Record {
	all := []*trace.Record{
		{Kind: trace.KindHeader, PID: 9, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic}},
		{Kind: trace.KindProcess, PID: 9, Process: trace.Process{Name: "prog", WallTime: 1_700_000_000_000_001_000, Depth: 4}},
		{Kind: trace.KindResource, PID: 9, Resource: trace.Resource{ID: 1, Type: "memory"}},
	}
	for i := range uint64(n) {
		h := (i + 1) * 0x9e3779b97f4a7c15
		all = append(all, &trace.Record{Kind: trace.KindCall, Time: int64(i+1) * 1e6, PID: 9, TID: int32(i%3 + 9), Call: trace.Call{
			Seq: i + 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: h, Size: h >> 40,
			Stack: trace.Stack{Frames: []uint64{h, ^h}, End: trace.StackComplete},
		}})
	}
	return all
}

func encode(t testing.TB, format string, records []*trace.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := encoder.New(format, &out, encoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func inGzip(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func inZstd(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// seqs reads a trace and returns the Seq of each call.
func seqs(r trace.Reader) (all []uint64, err error) {
	var rec trace.Record
	for {
		if err := r.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		if rec.Kind == trace.KindCall {
			all = append(all, rec.Call.Seq)
		}
	}
}

func TestFormatsAndCompression(t *testing.T) {
	records := calls(3000)
	for _, f := range encoder.Formats() {
		plain := encode(t, f.Name, records)
		for _, tt := range []struct {
			data        []byte
			compression string
		}{
			{plain, ""},
			{inGzip(t, plain), "gzip"},
			{inZstd(t, plain), "zstd"},
			{inZstd(t, inGzip(t, plain)), "zstd gzip"},
			{inGzip(t, inZstd(t, plain)), "gzip zstd"},
			{append([]byte{0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'h', 'i'}, inZstd(t, plain)...), "zstd"},
			{append(inGzip(t, plain[:1000]), inGzip(t, plain[1000:])...), "gzip"},
		} {
			for name, r := range map[string]io.Reader{"": bytes.NewReader(tt.data), "one byte": iotest.OneByteReader(bytes.NewReader(tt.data))} {
				in, err := decoder.Open(r, decoder.Options{})
				if err != nil {
					t.Errorf("%s %s %s: %v", f.Name, tt.compression, name, err)
					continue
				}
				if in.Format != f.Name || strings.Join(in.Compression, " ") != tt.compression {
					t.Errorf("%s %s %s: it is %s in %v", f.Name, tt.compression, name, in.Format, in.Compression)
				}
				got, err := seqs(in)
				if err != nil || len(got) != 3000 || got[2999] != 3000 {
					t.Errorf("%s %s %s: %d calls, %v", f.Name, tt.compression, name, len(got), err)
				}
				if err := errors.Join(in.Close(), in.Close()); err != nil {
					t.Errorf("%s %s %s: Close: %v", f.Name, tt.compression, name, err)
				}
			}
		}
	}
}

// A trace whose compressed data is cut or damaged yields its whole records and an error
// that reports it.
func TestCutCompression(t *testing.T) {
	plain := encode(t, "sprtrace", calls(20000))
	for name, data := range map[string][]byte{"gzip": inGzip(t, plain), "zstd": inZstd(t, plain)} {
		for _, n := range []int{len(data) - 1, len(data) - 5, len(data) / 2} {
			in, err := decoder.Open(bytes.NewReader(data[:n]), decoder.Options{})
			if err != nil {
				t.Fatalf("%s cut at %d: %v", name, n, err)
			}
			got, err := seqs(in)
			syntax, ok := errors.AsType[*trace.SyntaxError](err)
			if !ok || !errors.Is(err, trace.ErrTruncated) || syntax.Format != name {
				t.Errorf("%s cut at %d: %v", name, n, err)
			}
			if len(got) < 20000*(n-len(data)/10)/len(data)/2 {
				t.Errorf("%s cut at %d of %d: %d calls", name, n, len(data), len(got))
			}
			_ = in.Close()
		}
		bad := bytes.Clone(data)
		bad[len(bad)-2] ^= 0x55
		in, err := decoder.Open(bytes.NewReader(bad), decoder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seqs(in); !errors.Is(err, trace.ErrMalformed) {
			t.Errorf("%s damaged: %v", name, err)
		}
	}
}

func TestReadErrorsPassThrough(t *testing.T) {
	broken := errors.New("broken disk")
	data := inGzip(t, encode(t, "sprtrace", calls(20000)))
	for _, n := range []int{0, 2, 5, len(data) / 2} {
		r := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken))
		in, err := decoder.Open(r, decoder.Options{})
		if err == nil {
			_, err = seqs(in)
		}
		if _, syntax := errors.AsType[*trace.SyntaxError](err); !errors.Is(err, broken) || syntax {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	gz := inGzip(t, encode(t, "text", calls(1)))
	for _, tt := range []struct {
		name string
		data []byte
		is   error
		text string
	}{
		{"empty", nil, trace.ErrTruncated, "empty"},
		{"letter", []byte("Dear reader,\n"), decoder.ErrUnknown, "expected sp-rtrace"},
		{"elf", []byte("\x7fELF\x02\x01\x01"), decoder.ErrUnknown, "jsonl"},
		{"text with NUL", []byte("version=2.0, \x00\n"), decoder.ErrUnknown, "expected"},
		{"side file", []byte(`{"format":"rtrace-side","version":1}` + "\n"), decoder.ErrUnknown, "side file"},
		{"gzip in gzip", inGzip(t, gz), decoder.ErrUnknown, "gzip or zstd"},
		{"empty in gzip", inGzip(t, nil), trace.ErrTruncated, "empty"},
		{"head of gzip", gz[:6], trace.ErrTruncated, "gzip"},
		{"gzip of another method", []byte{0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 0}, trace.ErrMalformed, "gzip"},
		{"zstd with a window of a terabyte", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf0, 1, 0, 0}, trace.ErrLimit, "zstd"},
	} {
		_, err := decoder.Open(bytes.NewReader(tt.data), decoder.Options{})
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v (%s)", tt.name, err, tt.is, tt.text)
		}
	}
}

// Text is recognised by any of its records, also after comments.
func TestTextIsRecognised(t *testing.T) {
	for _, line := range []string{
		"version=2.0, arch=x86_64, ", "backtrace depth=3, ", ": /bin/x => 0x1000-0x2000", "@ 1 : phase", "<1> : memory (memory allocation in bytes)",
		"& maps : 1-maps", "12. malloc(3) = 0x10", "0. [00:00:00.001] free(0x10)", "1. @3 [00:00:00.001] open<fd>(1) = 0x3",
	} {
		for _, before := range []string{"", "## a comment\n", "\n"} {
			in, err := decoder.Open(strings.NewReader(before+line+"\n"), decoder.Options{})
			if err != nil || in.Format != "text" {
				t.Errorf("%q: %v", before+line, err)
			}
		}
	}
}

// Open does not wait for a pipe once it has read enough to recognise the format.
func TestPipe(t *testing.T) {
	r, w := io.Pipe()
	data := encode(t, "jsonl", calls(1))
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(data)
		written <- err
	}()
	in, err := decoder.Open(r, decoder.Options{}) // before the other end of the pipe is closed
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-written, w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := seqs(in); err != nil || len(got) != 1 {
		t.Errorf("%d calls, %v", len(got), err)
	}
}

func TestStats(t *testing.T) {
	data := encode(t, "sprtrace", calls(2))
	data = append(data, "XYZZ\x04\x00\x00\x00abcd"...)
	in, err := decoder.Open(bytes.NewReader(data), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := seqs(in); err != nil || len(got) != 2 {
		t.Errorf("%d calls, %v", len(got), err)
	}
	if diff := cmp.Diff(decoder.Stats{Version: "2.0", Skipped: 1}, in.Stats()); diff != "" {
		t.Error(diff)
	}
	in, err = decoder.Open(bytes.NewReader(data), decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seqs(in); err == nil {
		t.Error("strict: an unknown packet is taken")
	}
}

// tids reads a trace and returns the TID of each call.
func tids(t *testing.T, path string, o decoder.Options) (all []int32, side string) {
	t.Helper()
	in, err := decoder.OpenFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	var rec trace.Record
	for {
		err := in.ReadRecord(&rec)
		if errors.Is(err, io.EOF) {
			return all, in.Side
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == trace.KindCall {
			all = append(all, rec.TID)
		}
	}
}

func TestSideFile(t *testing.T) {
	dir := t.TempDir()
	records := calls(3)
	put := func(name string, data []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	side := filepath.Join(dir, "a.side")
	w, err := sidefile.NewWriter(side, encoder.Positions("sprtrace"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sideBytes, err := os.ReadFile(side)
	if err != nil {
		t.Fatal(err)
	}
	plain := encode(t, "sprtrace", records)
	named := func(side string) []byte {
		attachment := &trace.Record{Kind: trace.KindAttachment, Attachment: trace.Attachment{Name: "side", Path: side}}
		return encode(t, "sprtrace", append([]*trace.Record{records[0], attachment}, records[1:]...))
	}
	secret := filepath.Join(t.TempDir(), "secret.side")
	if err := os.WriteFile(secret, sideBytes, 0o600); err != nil {
		t.Fatal(err)
	}
	put("b.side", inZstd(t, sideBytes))
	if err := os.Mkdir(filepath.Join(dir, "folder.side"), 0o700); err != nil {
		t.Fatal(err)
	}
	with, without := []int32{9, 10, 11}, []int32{0, 0, 0}
	for _, tt := range []struct {
		path string
		o    decoder.Options
		want []int32
		side string
	}{
		{put("a", plain), decoder.Options{}, with, "a.side"},
		{put("a", plain), decoder.Options{NoSide: true}, without, ""},
		{put("a.gz", inGzip(t, plain)), decoder.Options{}, with, "a.side"},
		{put("a.zst", inZstd(t, plain)), decoder.Options{}, with, "a.side"},
		{put("b", plain), decoder.Options{}, with, "b.side"},
		{put("c", plain), decoder.Options{}, without, ""},
		{put("renamed", named("a.side")), decoder.Options{}, with, "a.side"},
		{put("renamed", named("a.side")), decoder.Options{NoSide: true}, without, ""},
		{put("gone", named("nowhere.side")), decoder.Options{NoSide: true}, without, ""},
		{put("folder", plain), decoder.Options{}, without, ""},
		{put("outside", named("../"+filepath.Base(filepath.Dir(secret))+"/secret.side")), decoder.Options{}, without, ""},
		{put("absolute", named(secret)), decoder.Options{}, without, ""},
	} {
		got, side := tids(t, tt.path, tt.o)
		want := ""
		if tt.side != "" {
			want = filepath.Join(dir, tt.side)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || side != want {
			t.Errorf("%s: side file %q, want %q\n%s", tt.path, side, want, diff)
		}
	}
	if _, err := decoder.OpenFile(filepath.Join(dir, "missing"), decoder.Options{}); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "opening ") {
		t.Errorf("missing: %v", err)
	}
}

// FuzzOpen: for any input, an error reports its offset, unless it concerns the whole
// input: one that is empty, of no known format, or of a format without records.
func FuzzOpen(f *testing.F) {
	for _, format := range encoder.Formats() {
		data := encode(f, format.Name, calls(2))
		f.Add(data)
		f.Add(inGzip(f, data))
		f.Add(inZstd(f, data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := decoder.Open(bytes.NewReader(data), decoder.Options{})
		if err == nil {
			_, err = seqs(in)
			if e := in.Close(); e != nil {
				t.Fatal(e)
			}
		}
		_, placed := errors.AsType[*trace.SyntaxError](err)
		whole := errors.Is(err, decoder.ErrUnknown) || errors.Is(err, decoder.ErrEmpty) || errors.Is(err, trace.ErrUnsupported)
		if err != nil && !placed && !whole {
			t.Fatalf("%T: %v", err, err)
		}
	})
}

func ExampleOpen() {
	data := "{\"format\":\"rtrace-jsonl\",\"version\":1}\n{\"kind\":\"call\",\"function\":\"malloc\",\"size\":8}\n"
	in, err := decoder.Open(strings.NewReader(data), decoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	var r trace.Record
	for in.ReadRecord(&r) == nil {
		fmt.Println(in.Format, r.Kind, r.Call.Function, r.Call.Size)
	}
	// Output: jsonl call malloc 8
}
