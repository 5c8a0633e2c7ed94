package sprtrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/window"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Parts of traces as lines of dumps, for undump.
const (
	textHead64 = "0 0 HANDSHAKE version=2.0 arch=\"x86_64\" endian=0 pointer=8\n0 0 LAYOUT type-first little-endian 8-byte-pointers\n"
	textHead32 = "0 0 HANDSHAKE version=2.0 arch=\"i686\" endian=0 pointer=4\n0 0 LAYOUT type-first little-endian 4-byte-pointers\n"
	textDoc32  = "0 0 HANDSHAKE version=1.4 arch=\"i686\" endian=0 pointer=4\n0 0 LAYOUT type-first little-endian 4-byte-pointers\n"
	textProc   = "0 0 PINF pid=7 secs=1 usecs=2 depth=3 name=\"p\"\n"
	textCall   = "0 0 CALL resource=1 context=0 timestamp=100 type=2 name=\"malloc\" size=10 id=0x1000\n"
	textStack  = "0 0 BTRC frames=[0x10 0x20]\n"
	textArgs   = "0 0 ARGS args=[\"a\"=\"1\"]\n"
)

func undump(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Undump(&out, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// summary describes records in a short form, in order.
func summary(recs []*trace.Record) string {
	var words []string
	for _, r := range recs {
		switch r.Kind {
		case trace.KindCall:
			words = append(words, fmt.Sprintf("%d:%s/%d/%d", r.Call.Seq, r.Call.Op, len(r.Call.Args), len(r.Call.Stack.Frames)))
		case trace.KindOpaque:
			words = append(words, wire.Letters(r.Opaque.ID))
		default:
			words = append(words, r.Kind.String())
		}
	}
	return strings.Join(words, " ")
}

// What each mode of reading does with packets that are odd or out of order.
func TestModes(t *testing.T) {
	tests := []struct {
		name, text                string
		tolerant, strict, legacy  string
		strictErr                 error
		unknown, malformed, orphs uint64
		warning                   string
	}{
		{
			name: "whole", text: textHead64 + textProc + textCall + textArgs + textStack,
			tolerant: "header process 1:alloc/1/2", strict: "header process 1:alloc/1/2", legacy: "header process 1:alloc/1/2",
		},
		{
			name: "stack without call", text: textHead64 + textStack + textCall,
			tolerant: "header BTRC 1:alloc/0/0", strict: "header", legacy: "header 1:alloc/0/0",
			strictErr: trace.ErrMalformed, orphs: 1, warning: "BTRC packet without a call before it",
		},
		{
			name: "arguments behind the stack", text: textHead64 + textCall + textStack + textArgs + textCall,
			tolerant: "header 1:alloc/1/2 2:alloc/0/0", strict: "header 1:alloc/0/2", legacy: "header 1:alloc/0/2 2:alloc/0/0",
			strictErr: trace.ErrMalformed, warning: "ARGS packet without a call before it",
		},
		{
			name: "arguments twice", text: textHead64 + textCall + textArgs + "0 0 ARGS args=[\"b\"=\"2\" \"c\"=\"3\"]\n" + textStack,
			tolerant: "header 1:alloc/1/2 ARGS", strict: "header 1:alloc/1/2", legacy: "header 1:alloc/2/2",
			strictErr: trace.ErrMalformed, orphs: 1,
		},
		{
			name: "stack twice", text: textHead64 + textCall + textStack + textStack,
			tolerant: "header 1:alloc/0/2 BTRC", strict: "header 1:alloc/0/2", legacy: "header 1:alloc/0/2",
			strictErr: trace.ErrMalformed, orphs: 1, warning: "BTRC packet without a call before it",
		},
		{
			name: "mapping parts call and stack", text: textHead64 + textCall + "0 0 MMAP from=1 to=2 path=\"x\"\n" + textStack,
			tolerant: "header 1:alloc/0/0 mapping BTRC", strict: "header 1:alloc/0/0 mapping", legacy: "header 1:alloc/0/0 mapping",
			strictErr: trace.ErrMalformed, orphs: 1, warning: "BTRC packet without a call before it",
		},
		{
			name: "FILE and OCFG do not", text: textHead64 + textCall + "0 0 FILE name=\"a\" path=\"b\"\n" + textArgs + "0 0 OCFG dir=\"\" options=\"\"\n" + textStack + textCall,
			tolerant: "header 1:alloc/1/2 attachment OCFG 2:alloc/0/0", strict: "header 1:alloc/1/2 attachment OCFG 2:alloc/0/0",
			legacy: "header 1:alloc/1/2 attachment OCFG 2:alloc/0/0",
		},
		{
			name: "unknown packet", text: textHead64 + textCall + "0 0 PACKET code=0x41424344 data=0102\n" + textCall,
			tolerant: "header 1:alloc/0/0 DCBA 2:alloc/0/0", strict: "header 1:alloc/0/0", legacy: "header 1:alloc/0/0",
			strictErr: trace.ErrUnsupported, unknown: 1, warning: "unknown packet: 41424344 (len=10)",
		},
		{
			name: "NLIB", text: textHead64 + "0 0 NLIB name=\"*\"\n" + textCall,
			tolerant: "header NLIB 1:alloc/0/0", strict: "header NLIB 1:alloc/0/0", legacy: "header",
			warning: "unknown packet: 42494c4e (len=12)",
		},
		{
			name: "two traces", text: textHead64 + textProc + textCall + textHead32 + textCall + textCall,
			tolerant: "header process 1:alloc/0/0 header 1:alloc/0/0 2:alloc/0/0", strict: "header process 1:alloc/0/0", legacy: "header process 1:alloc/0/0",
			strictErr: trace.ErrMalformed, warning: "handshake packet received in the middle",
		},
		{
			name: "call of type 3", text: textHead64 + textCall + strings.Replace(textCall, "type=2", "type=3", 1) + textStack + textCall,
			tolerant: "header 1:alloc/0/0 CALL BTRC 3:alloc/0/0", strict: "header 1:alloc/0/0", legacy: "header 1:alloc/0/0 2:none/0/2 3:alloc/0/0",
			strictErr: trace.ErrMalformed, malformed: 1, orphs: 1,
		},
		{
			name: "short call", text: textHead64 + "0 0 CALL resource=1 context=0 timestamp=1 type=2 name=\"malloc\"\n" + textCall,
			tolerant: "header CALL 2:alloc/0/0", strict: "header", legacy: "header CALL 2:alloc/0/0",
			strictErr: trace.ErrMalformed, malformed: 1,
		},
		{
			name: "stack with too many frames", text: textHead64 + textCall + "0 0 PACKET code=0x43525442 data=ffffffff00000000\n" + textCall,
			tolerant: "header 1:alloc/0/0 BTRC 2:alloc/0/0", strict: "header 1:alloc/0/0", legacy: "header 1:alloc/0/0 2:alloc/0/0",
			strictErr: trace.ErrMalformed, orphs: 1, warning: "BTRC packet without a call before it",
		},
		{
			name: "arguments that do not parse", text: textHead64 + textCall + "0 0 PACKET code=0x53475241 data=ffffffff00000000\n" + textStack,
			tolerant: "header 1:alloc/0/2 ARGS", strict: "header 1:alloc/0/2", legacy: "header 1:alloc/0/2",
			strictErr: trace.ErrMalformed, orphs: 1, warning: "ARGS packet without a call before it",
		},
		{
			name: "mapping that does not parse", text: textHead64 + "0 0 PACKET code=0x50414d4d data=0100\n" + textCall,
			tolerant: "header MMAP 1:alloc/0/0", strict: "header", legacy: "header MMAP 1:alloc/0/0",
			strictErr: trace.ErrMalformed, malformed: 1,
		},
		{
			name: "bytes behind the fields", text: textHead64 + "0 0 CTXR id=1 name=\"x\" rest=00000000\n" + strings.Replace(textCall, "\n", " rest=00000000\n", 1),
			tolerant: "header context 1:alloc/0/0", strict: "header", legacy: "header context 1:alloc/0/0",
			strictErr: trace.ErrMalformed,
		},
	}
	for _, tt := range tests {
		data := undump(t, tt.text)
		t.Run(tt.name+"/tolerant", func(t *testing.T) {
			d, recs, err := load(t, data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(recs); got != tt.tolerant {
				t.Errorf("got %q, want %q", got, tt.tolerant)
			}
			s := d.Stats()
			if s.Unknown != tt.unknown || s.Malformed != tt.malformed || s.Orphans != tt.orphs {
				t.Errorf("stats %+v, want %d unknown, %d malformed, %d orphans", s, tt.unknown, tt.malformed, tt.orphs)
			}
			if want := uint64(strings.Count(tt.text, "\n") - strings.Count(tt.text, "LAYOUT")); s.Packets != want {
				t.Errorf("%d packets, want %d", s.Packets, want)
			}
			if s.Bytes != int64(len(data)) {
				t.Errorf("%d bytes, want %d", s.Bytes, len(data))
			}
		})
		t.Run(tt.name+"/strict", func(t *testing.T) {
			_, recs, err := load(t, data, Options{Strict: true})
			var syntax *trace.SyntaxError
			if tt.strictErr == nil && err != nil || tt.strictErr != nil && (!errors.Is(err, tt.strictErr) || !errors.As(err, &syntax)) {
				t.Errorf("error %v, want %v", err, tt.strictErr)
			}
			if syntax != nil && !slices.Contains(packetEnds(t, data), int(syntax.Offset)) {
				t.Errorf("error at %d, where no packet begins", syntax.Offset)
			}
			if got := summary(recs); got != tt.strict {
				t.Errorf("got %q, want %q", got, tt.strict)
			}
		})
		t.Run(tt.name+"/legacy", func(t *testing.T) {
			d, recs, err := load(t, data, Options{Legacy: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(recs); got != tt.legacy {
				t.Errorf("got %q, want %q", got, tt.legacy)
			}
			if got := strings.Join(d.Warnings(), "\n"); got != tt.warning {
				t.Errorf("warning %q, want %q", got, tt.warning)
			}
		})
	}
}

func TestLegacySize(t *testing.T) {
	data := undump(t, textHead64+strings.Replace(textCall, "size=10", "size=-2147483632", 1))
	for legacy, want := range map[bool]uint64{false: 0x80000010, true: 0xffffffff80000010} {
		_, recs, err := load(t, data, Options{Legacy: legacy})
		if err != nil {
			t.Fatal(err)
		}
		if got := recs[1].Call.Size; got != want {
			t.Errorf("legacy %v: size %#x, want %#x", legacy, got, want)
		}
	}
}

// The original takes the fields of a cut HINF for pointers and continues with the
// packet that follows.
func TestLegacyHeapInfo(t *testing.T) {
	heap := "0 0 HINF bottom32=1 top32=2 arena=3 ordblks=4 smblks=5 hblks=6 hblkhd=7 usmblks=8 fsmblks=9 uordblks=10 fordblks=11 keepcost=-12\n"
	heap = strings.Replace(heap, "-12", "0xfffffff4", 1)
	want := trace.HeapInfo{
		Bottom: 1 | 2<<32, Top: 3 | 4<<32, Arena: 5, OrdBlks: 6, SmBlks: 7, HBlks: 8, HBlkHd: 9,
		UsmBlks: 10, FsmBlks: 11, UordBlks: 0xfffffffffffffff4,
	}
	for _, tt := range []struct {
		name, tail     string
		ford, keepcost uint64
		calls          string
	}{
		{"at the end", "", 0, 0, ""},
		{"before another", textCall, wire.CALL, 36, " 1:alloc/0/0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []func(io.Reader) io.Reader{whole, iotest.OneByteReader} {
				d, err := New(r(bytes.NewReader(undump(t, textHead64+heap+tt.tail))), Options{Legacy: true})
				if err != nil {
					t.Fatal(err)
				}
				recs, err := trace.Load(d)
				if err != nil {
					t.Fatal(err)
				}
				want.FordBlks, want.KeepCost = tt.ford, tt.keepcost
				if diff := cmp.Diff(want, recs[1].HeapInfo); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got := summary(recs); got != "header heapinfo"+tt.calls {
					t.Errorf("records %q", got)
				}
			}
		})
	}
}

func whole(r io.Reader) io.Reader { return r }

// The result does not depend on how the input is split into reads.
func TestChunks(t *testing.T) {
	for _, file := range corpusFiles(t) {
		data := readFile(t, file)
		_, want, wantErr := load(t, data, Options{})
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with error": iotest.DataErrReader,
		} {
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				d, err := New(cut(bytes.NewReader(data)), Options{})
				if err != nil {
					t.Fatal(err)
				}
				got, err := trace.Load(d)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("error %v, want %v", err, wantErr)
				}
				if len(got) != len(want) {
					t.Fatalf("%d records, want %d", len(got), len(want))
				}
				for i := range want {
					if w, g := payload(want[i]), payload(got[i]); !reflect.DeepEqual(w, g) {
						t.Fatalf("record %d (-whole +cut):\n%s", i, cmp.Diff(w, g))
					}
				}
			})
		}
	}
}

// An input that fails yields the records before the error, then its own error
// unchanged.
func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	data := undump(t, textHead64+textProc+textCall+textStack)
	for n := range len(data) + 1 {
		d, err := New(io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken)), Options{})
		var recs []*trace.Record
		if err == nil {
			recs, err = trace.Load(d)
			if _, again := trace.Load(d); again != err {
				t.Errorf("after %d bytes: second error %v", n, again)
			}
		}
		if err != broken {
			t.Fatalf("after %d bytes: error %v", n, err)
		}
		if n == len(data) && summary(recs) != "header process 1:alloc/0/2" {
			t.Errorf("records %q", summary(recs))
		}
	}
	if _, err := New(idle{}, Options{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that returns nothing: %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestNewErrors(t *testing.T) {
	tests := []struct {
		name, hex string
		why       error
	}{
		{"empty", "", trace.ErrTruncated},
		{"cut", "f0 0e 02 00 06 'x86'", trace.ErrTruncated},
		{"text", "'version=2.0, arch=x86_64'", trace.ErrMalformed},
		{"version 0", "f0 06 00 09 00 00 08 00", trace.ErrUnsupported},
		{"version 3", "f0 06 03 00 00 00 08 00", trace.ErrUnsupported},
		{"pointer size", "f0 06 02 00 00 00 02 00", trace.ErrUnsupported},
		{"byte order", "f0 06 02 00 00 02 08 00", trace.ErrUnsupported},
		{"name too long", "f0 06 02 00 08 00 08 00", trace.ErrMalformed},
		{"too short", "f0 01 02 00 00 00 08 00", trace.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(bytes.NewReader(unhex(t, tt.hex)), Options{})
			var syntax *trace.SyntaxError
			if !errors.Is(err, tt.why) || !errors.As(err, &syntax) {
				t.Fatalf("error %v, want a SyntaxError of %v", err, tt.why)
			}
			if syntax.Offset != 0 || syntax.Format != "sp-rtrace" {
				t.Errorf("%s at %d", syntax.Format, syntax.Offset)
			}
		})
	}
	for _, opts := range []Options{{Strict: true, Legacy: true}, {MaxPacket: -1}, {MaxPacket: 1<<30 + 1}} {
		if _, err := New(bytes.NewReader(unhex(t, hs20)), opts); err == nil {
			t.Errorf("%+v was accepted", opts)
		}
		if _, err := NewWalker(bytes.NewReader(nil), opts); err == nil {
			t.Errorf("%+v was accepted by NewWalker", opts)
		}
	}
}

func TestBrokenSizes(t *testing.T) {
	tests := []struct {
		name, hex string
		opts      Options
		why       error
	}{
		{"over the limit", hs20 + "'MINF' 01000001 00", Options{}, trace.ErrLimit},
		{"negative", hs20 + "'MINF' ffffffff 00", Options{}, trace.ErrLimit},
		{"over an own limit", hs20 + "'MINF' 10000000 04000000 03000200 0600 'memory'", Options{MaxPacket: 15}, trace.ErrLimit},
		{"at an own limit", hs20 + "'MINF' 10000000 04000000 03000200 0600 'memory'", Options{MaxPacket: 16}, nil},
		{"does not cover the type", hs14 + "03000000 'MINF' 00000000", Options{}, trace.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := unhex(t, tt.hex)
			_, recs, err := load(t, data, tt.opts)
			var syntax *trace.SyntaxError
			if !errors.Is(err, tt.why) || tt.why != nil && !errors.As(err, &syntax) {
				t.Fatalf("error %v, want %v", err, tt.why)
			}
			if syntax != nil && syntax.Offset != 16 {
				t.Errorf("error at %d, want 16", syntax.Offset)
			}
			if len(recs) == 0 {
				t.Error("no header")
			}
			tt.opts.Legacy = true
			if _, _, err := load(t, data, tt.opts); err != nil {
				t.Errorf("legacy reading: %v", err)
			}
		})
	}
}

// A packet larger than the buffer is read whole.
func TestLargePacket(t *testing.T) {
	big := bytes.Repeat([]byte{1, 2, 3, 4}, 300_000)
	order := (&Walker{}).order
	data := undump(t, textHead64)
	data = appendPacket(data, order, 0x41424344, big)
	data = append(data, undump(t, textHead64+textCall)[16:]...)
	_, recs, err := load(t, data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(recs); got != "header DCBA 1:alloc/0/0" {
		t.Fatalf("records %q", got)
	}
	if !bytes.Equal(recs[1].Opaque.Data, big) {
		t.Error("the data differ")
	}
	// A size alone allocates nothing.
	d, err := New(bytes.NewReader(unhex(t, hs20+"'MINF' ffff ff00 00")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Load(d); !errors.Is(err, trace.ErrTruncated) {
		t.Errorf("error %v", err)
	}
	if n := cap(d.w.src.Bytes()); n > window.Size {
		t.Errorf("the buffer grew to %d bytes for a packet that is not there", n)
	}
}

// Many packets between a call and its stack do not accumulate.
func TestDeferredIsBounded(t *testing.T) {
	file := "0 0 FILE name=\"a\" path=\"b\"\n"
	data := undump(t, textHead64+textCall+strings.Repeat(file, 3*maxDeferred)+textStack)
	d, recs, err := load(t, data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "header 1:alloc/0/0" + strings.Repeat(" attachment", 3*maxDeferred) + " BTRC"
	if got := summary(recs); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(d.deferred.packets) > maxDeferred {
		t.Errorf("%d packets deferred", len(d.deferred.packets))
	}
}
