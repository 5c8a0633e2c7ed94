package sprtrace

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rtrace-bpf/internal/window"
	"rtrace-bpf/trace"
)

// seeds adds the small traces of the corpus and all vectors.
func seeds(f *testing.F, add func(data []byte)) {
	for _, name := range []string{"context", "c-leaks-32", "synthetic/multi-v12", "synthetic/multi-unk", "synthetic/multi-docstr", "synthetic/hinf64"} {
		add(readFile(f, filepath.Join(corpus, name+".rtrace")))
	}
	for _, v := range vectors {
		add(unhex(f, v.hex))
	}
	two := unhex(f, vectors[0].hex)
	add(append(two, two...))
}

// FuzzDecode: for any input, an error is a *trace.SyntaxError at an offset within it,
// all records are valid, and memory stays in proportion to the input.
func FuzzDecode(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, opts := range []Options{{}, {Strict: true}, {Legacy: true}} {
			decodeAny(t, data, opts)
		}
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(3*(64*len(data)+8*window.Size)); got > limit {
			t.Errorf("%d bytes allocated for %d bytes of input", got, len(data))
		}
	})
}

func decodeAny(t *testing.T, data []byte, opts Options) {
	d, err := New(bytes.NewReader(data), opts)
	if err != nil {
		checkSyntaxError(t, err, len(data))
		return
	}
	var (
		r     trace.Record
		calls uint64
	)
	for n := 0; ; n++ {
		err := d.ReadRecord(&r)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				if opts.Legacy {
					t.Errorf("legacy reading fails: %v", err)
				}
				checkSyntaxError(t, err, len(data))
			}
			if again := d.ReadRecord(&r); again != err {
				t.Errorf("first %v, then %v", err, again)
			}
			break
		}
		if n == 0 && r.Kind != trace.KindHeader {
			t.Errorf("first record is %s", r.Kind)
		}
		switch r.Kind {
		case trace.KindHeader:
			calls = 0
			if p := r.Header.PointerSize; p != 4 && p != 8 {
				t.Errorf("pointer size %d", p)
			}
		case trace.KindCall:
			if r.Call.Seq <= calls {
				t.Errorf("call %d follows call %d", r.Call.Seq, calls)
			}
			calls = r.Call.Seq
			if 4*len(r.Call.Stack.Frames) > len(data) || 4*len(r.Call.Args) > len(data) {
				t.Errorf("%d frames and %d arguments from %d bytes", len(r.Call.Stack.Frames), len(r.Call.Args), len(data))
			}
			if strings.ContainsRune(r.Call.Function, 0) {
				t.Errorf("name %q", r.Call.Function)
			}
		case trace.KindOpaque:
			if opts.Strict && r.Opaque.ID != 0x4746434f && r.Opaque.ID != 0x42494c4e {
				t.Errorf("strict reading delivers packet %#x", r.Opaque.ID)
			}
		}
		_ = r.Clone()
	}
	s := d.Stats()
	if s.Dialect == "" || s.Handshakes == 0 || s.Packets < s.Calls+s.Handshakes || s.Bytes > int64(len(data)) {
		t.Errorf("stats %+v", s)
	}
	if len(d.Warnings()) > maxWarnings {
		t.Errorf("%d warnings", len(d.Warnings()))
	}
}

func checkSyntaxError(t *testing.T, err error, size int) {
	t.Helper()
	var syntax *trace.SyntaxError
	if !errors.As(err, &syntax) {
		t.Errorf("error %v (%T)", err, err)
		return
	}
	if syntax.Offset < 0 || syntax.Offset > int64(size) {
		t.Errorf("%v, but the input has %d bytes", err, size)
	}
	for _, why := range []error{trace.ErrTruncated, trace.ErrMalformed, trace.ErrLimit, trace.ErrUnsupported} {
		if errors.Is(err, why) {
			return
		}
	}
	t.Errorf("%v wraps none of the reasons", err)
}

// FuzzDump: Undump restores any input from its dump.
func FuzzDump(f *testing.F) {
	seeds(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) { checkTwin(t, data) })
}

// FuzzUndump: an error is a *trace.SyntaxError, and the result of a text has a dump
// with the same result.
func FuzzUndump(f *testing.F) {
	seeds(f, func(data []byte) {
		var text bytes.Buffer
		_ = Dump(&text, bytes.NewReader(data), Options{}) // also for cut traces
		f.Add(text.String())
	})
	f.Add("- - LAYOUT type-first big-endian 4-byte-pointers swapped-letters\n- - ARGS texts=[exact\"\\xff\" null] rest=00 # x\n")
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		if err := Undump(&out, strings.NewReader(text)); err != nil {
			checkSyntaxError(t, err, len(text))
		}
		checkTwin(t, out.Bytes())
	})
}
