package sprtrace

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// checkTwin checks that Undump restores data from its dump, and returns the dump.
func checkTwin(t testing.TB, data []byte) string {
	t.Helper()
	var text, again bytes.Buffer
	err := Dump(&text, bytes.NewReader(data), Options{})
	var syntax *trace.SyntaxError
	if err != nil && !errors.As(err, &syntax) {
		t.Fatalf("dump: %v", err)
	}
	if err := Undump(&again, bytes.NewReader(text.Bytes())); err != nil {
		t.Fatalf("undump: %v\n%s", err, text.String())
	}
	if !bytes.Equal(again.Bytes(), data) {
		t.Fatalf("the dump restores other bytes:\n%x\n%x\n%s", data, again.Bytes(), text.String())
	}
	return text.String()
}

func TestDumpRestoresCorpus(t *testing.T) {
	for _, file := range corpusFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data := readFile(t, file)
			text := checkTwin(t, data)
			// Every known packet must be written as fields.
			for line := range strings.Lines(text) {
				if f := strings.Fields(line); f[2] == "PACKET" && !strings.Contains(line, "code=0x575a5958") {
					t.Errorf("not by its fields: %s", line)
				}
			}
			for n := 0; n < len(data); n += 1 + n/20 {
				checkTwin(t, data[:n])
			}
		})
	}
}

func TestDumpLines(t *testing.T) {
	tests := []struct {
		name, hex string
		want      []string // without the first two lines, unless there is no handshake
		fails     error
	}{
		{"handshake", hs20, nil, nil},
		{
			"fields",
			hs20 + "'RESR' 18000000 02000000 01000000 0200 'fd' 0a00 'file' 000000000000" +
				"'CALL' 24000000 01000000 02000000 58cd2600 02000000 0600 'malloc' ffffffff a06226a2c9550000" +
				"'ARGS' 0c000000 01000000 0200 'n' 00 0200 '1' 00" +
				"'BTRC' 14000000 02000000 b8b17e75c9550000 0100000000000000",
			[]string{
				`00000010    24 PACKET code=0x52534552 data=0200000001000000020066640a0066696c65000000000000 # RESR`,
				`00000030    36 CALL resource=1 context=0x2 timestamp=2542936 type=2 name="malloc" size=-1 id=0x55c9a22662a0`,
				`0000005c    12 ARGS args=["n"="1"]`,
				`00000070    20 BTRC frames=[0x55c9757eb1b8 0x1]`,
			},
			nil,
		},
		{
			"string forms",
			hs20 + "'CTXR' 0c000000 01000000 0500 'phase' 00" + "'CTXR' 08000000 01000000 0000 0000" +
				"'CTXR' 08000000 01000000 0200 0000" + "'CTXR' 08000000 01000000 0200 '\"' ff",
			[]string{
				`00000010    12 CTXR id=0x1 name=exact"phase"`,
				`00000024     8 CTXR id=0x1 name=null`,
				`00000034     8 CTXR id=0x1 name=""`,
				`00000044     8 CTXR id=0x1 name="\"\xff"`,
			},
			nil,
		},
		{
			"bytes behind the fields",
			hs20 + "'CTXR' 0c000000 01000000 0200 'ab' 01020304",
			[]string{`00000010    12 CTXR id=0x1 name="ab" rest=01020304`},
			nil,
		},
		{
			"does not parse",
			hs20 + "'CTXR' 04000000 01000000",
			[]string{`00000010     4 PACKET code=0x52585443 data=01000000 # CTXR: data ends inside a field`},
			nil,
		},
		{
			"unknown", hs20 + "'XYZW' 04000000 61626364",
			[]string{`00000010     4 PACKET code=0x575a5958 data=61626364`},
			nil,
		},
		{
			"cut", hs20 + "'XYZW' 04000000 6162",
			[]string{`00000010    10 RAW data=58595a57040000006162`},
			trace.ErrTruncated,
		},
		{
			"wrong letters", hs10 + "10000000 'CTTT' 04000000 0600 'phase' 00",
			[]string{`0000000c    12 CTTT id=0x4 name="phase"`},
			nil,
		},
		{
			"narrow HINF",
			hs20 + "'HINF' 30000000 00806d92 00906f92 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000 0a000000",
			[]string{`00000010    48 HINF bottom32=0x926d8000 top32=0x926f9000 arena=1 ordblks=2 smblks=3 hblks=4 hblkhd=5 usmblks=6 fsmblks=7 uordblks=8 fordblks=9 keepcost=10`},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := unhex(t, tt.hex)
			checkTwin(t, data)
			var text bytes.Buffer
			if err := Dump(&text, bytes.NewReader(data), Options{}); !errors.Is(err, tt.fails) || (err == nil) != (tt.fails == nil) {
				t.Errorf("error %v, want %v", err, tt.fails)
			}
			var lines []string
			if l := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n"); len(l) > 2 {
				lines = l[2:]
			}
			if diff := cmp.Diff(tt.want, lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDumpHandshakeLines(t *testing.T) {
	tests := []struct{ name, hex, want string }{
		{
			"2.0", hs20, `00000000    14 HANDSHAKE version=2.0 arch="x86_64" endian=0 pointer=8` + "\n" +
				"00000000     0 LAYOUT type-first little-endian 8-byte-pointers\n",
		},
		{
			"1.0", hs10, `00000000    10 HANDSHAKE version=1.0 arch="arm" endian=0 pointer=4` + "\n" +
				"00000000     0 LAYOUT size-first little-endian 4-byte-pointers\n",
		},
		{
			"odd padding", "f0 0e 02 00 06 'x86_64' 00 08 010203", "00000000    16 RAW data=f00e0200067838365f36340008010203\n" +
				"00000000     0 LAYOUT type-first little-endian 8-byte-pointers\n",
		},
		{
			"big-endian with letters in order", hs20s390 + "'NLIB' 00000004 0002 '*' 00",
			`00000000    10 HANDSHAKE version=2.0 arch="s390x" endian=1 pointer=8` + "\n" +
				"00000000     0 LAYOUT type-first big-endian 8-byte-pointers swapped-letters\n" +
				`0000000c     4 NLIB name="*"` + "\n",
		},
		{"no trace", "'hello'", "00000000     5 RAW data=68656c6c6f\n"},
		{"no version of ours", "f0 06 03 00 00 00 08 00", "00000000     8 RAW data=f006030000000800\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := checkTwin(t, unhex(t, tt.hex)); got != tt.want {
				t.Errorf("got:\n%swant:\n%s", got, tt.want)
			}
		})
	}
}

func TestUndumpByHand(t *testing.T) {
	text := `
# a comment, an empty line, no numbers in the first columns
- - HANDSHAKE version=2.0 arch="i686" endian=0 pointer=4
- - LAYOUT type-first little-endian 4-byte-pointers
- - CALL resource=0x1 context=3 timestamp=5 type=2 name="malloc" size=4294967295 id=16 # a comment
- - BTRC frames=[ 1 2 ]
- - ARGS texts=["a" null]
`
	var out bytes.Buffer
	if err := Undump(&out, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	want := unhex(t, hs20i+"'CALL' 20000000 01000000 03000000 05000000 02000000 0600 'malloc' ffffffff 10000000"+
		"'BTRC' 0c000000 02000000 01000000 02000000"+"'ARGS' 0c000000 02000000 0200 'a' 00 00000000")
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("got  %x\nwant %x", out.Bytes(), want)
	}
}

func TestUndumpErrors(t *testing.T) {
	head := "- - LAYOUT type-first little-endian 4-byte-pointers\n"
	tests := []struct {
		name, text string
		offset     int64
		why        error
	}{
		{"no layout", "- - CALL\n", 0, trace.ErrMalformed},
		{"no layout, unknown", "- - PACKET code=1 data=\n", 0, trace.ErrMalformed},
		{"bad layout", "- - LAYOUT sideways\n", 0, trace.ErrMalformed},
		{"layout without pointers", "- - LAYOUT type-first\n", 0, trace.ErrMalformed},
		{"no packet", head + "- - FROB x=1\n", 51, trace.ErrMalformed},
		{"no field", head + "- - CALL x=1\n", 51, trace.ErrMalformed},
		{"no value", head + "- - CALL resource=\n", 51, trace.ErrMalformed},
		{"too big", head + "- - CALL resource=4294967296\n", 51, trace.ErrMalformed},
		{"pointer too big", head + "- - CALL id=4294967296\n", 51, trace.ErrMalformed},
		{"signed too small", head + "- - CALL size=-2147483649\n", 51, trace.ErrMalformed},
		{"open string", head + "- - NLIB name=\"a\n", 51, trace.ErrMalformed},
		{"open list", head + "- - BTRC frames=[1\n", 51, trace.ErrMalformed},
		{"pair without value", head + "- - ARGS args=[\"a\"]\n", 51, trace.ErrMalformed},
		{"odd digits", head + "- - PACKET code=1 data=123\n", 51, trace.ErrMalformed},
		{"more on the line", head + "- - RAW data=12 34\n", 51, trace.ErrMalformed},
		{"version", "- - HANDSHAKE version=2 arch=\"\" endian=0 pointer=4\n", 0, trace.ErrMalformed},
		{"version too big", "- - HANDSHAKE version=2.256 arch=\"\" endian=0 pointer=4\n", 0, trace.ErrMalformed},
		{"arch too long", "- - HANDSHAKE version=2.0 arch=\"" + strings.Repeat("a", 249) + "\" endian=0 pointer=4\n", 0, trace.ErrLimit},
		{"string too long", head + "- - NLIB name=\"" + strings.Repeat("a", 65535) + "\"\n", 51, trace.ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			err := Undump(&out, strings.NewReader(tt.text))
			var syntax *trace.SyntaxError
			if !errors.As(err, &syntax) || !errors.Is(err, tt.why) {
				t.Fatalf("error %v, want a SyntaxError of %v", err, tt.why)
			}
			if syntax.Offset != int64(len(tt.text)) && syntax.Offset != tt.offset && !strings.HasPrefix(tt.text[syntax.Offset:], "- - ") {
				t.Errorf("offset %d is no line", syntax.Offset)
			}
			if strings.HasPrefix(tt.text, head) != (syntax.Offset != 0) {
				t.Errorf("offset %d", syntax.Offset)
			}
		})
	}
}

// The longest strings that fit are restored, in both forms.
func TestDumpLongStrings(t *testing.T) {
	for _, text := range []string{
		"- - NLIB name=\"" + strings.Repeat("a", 65534) + "\"\n",
		"- - NLIB name=\"" + strings.Repeat("a", 65531) + "\"\n",
		"- - NLIB name=exact\"" + strings.Repeat("a", 65535) + "\"\n",
	} {
		var out bytes.Buffer
		in := "- - HANDSHAKE version=2.0 arch=\"\" endian=0 pointer=4\n- - LAYOUT type-first little-endian 4-byte-pointers\n" + text
		if err := Undump(&out, strings.NewReader(in)); err != nil {
			t.Fatal(err)
		}
		if got := checkTwin(t, out.Bytes()); !strings.Contains(got, strings.TrimPrefix(text, "- - ")) {
			t.Errorf("%.40s comes back as %.140s", text, got)
		}
	}
}
