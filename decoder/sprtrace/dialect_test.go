package sprtrace

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// target is a dialect into which a trace is rewritten.
type target struct {
	name      string
	version   wire.Version
	sizeFirst bool
	big       bool
	swapped   bool // letters of types in the other byte order
	document  bool // CALL as in the document, ARGS after BTRC
	exact     bool // string lengths without padding
	buggy     bool // letters of 1.0
	lies      bool // the handshake has the wrong byte order
	dialect   string
}

var targets = []target{
	{name: "2.0", version: wire.V20, dialect: "2.0"},
	{name: "2.0 big", version: wire.V20, big: true, dialect: "2.0, big-endian"},
	{name: "2.0 big, letters in order", version: wire.V20, big: true, swapped: true, dialect: "2.0, big-endian"},
	{name: "2.0 little, letters reversed", version: wire.V20, swapped: true, dialect: "2.0"},
	{name: "2.0 exact", version: wire.V20, exact: true, dialect: "2.0, exact strings"},
	{name: "2.0 says big", version: wire.V20, lies: true, dialect: "2.0"},
	{name: "2.0 says little", version: wire.V20, big: true, lies: true, dialect: "2.0, big-endian"},
	{name: "2.0 document calls", version: wire.V20, document: true, dialect: "2.0, document calls"},
	{name: "2.0 size first", version: wire.V20, sizeFirst: true, dialect: "2.0 size first"},
	{name: "1.4", version: wire.V14, sizeFirst: true, dialect: "1.4 size first"},
	{name: "1.4 big", version: wire.V14, sizeFirst: true, big: true, dialect: "1.4 size first, big-endian"},
	{name: "1.4 document", version: wire.V14, document: true, exact: true, dialect: "1.4 document, exact strings"},
	{name: "1.4 document big", version: wire.V14, document: true, exact: true, big: true, dialect: "1.4 document, exact strings, big-endian"},
	{name: "1.4 document, padded", version: wire.V14, document: true, dialect: "1.4 document"},
	{name: "1.4 type first", version: wire.V14, dialect: "1.4 document, real calls"},
	{name: "1.3", version: wire.V13, sizeFirst: true, dialect: "1.3 size first"},
	{name: "1.2", version: wire.V12, sizeFirst: true, dialect: "1.2 size first"},
	{name: "1.0", version: wire.V10, sizeFirst: true, dialect: "1.0 size first"},
	{name: "1.0 wrong letters", version: wire.V10, sizeFirst: true, buggy: true, dialect: "1.0 size first"},
	{name: "1.0 wrong letters big", version: wire.V10, sizeFirst: true, buggy: true, big: true, dialect: "1.0 size first, big-endian"},
}

// rewrite returns a 2.0 trace in another dialect. It leaves out OCFG, whose strings are
// plain bytes for the reader.
func rewrite(t *testing.T, data []byte, to target) []byte {
	t.Helper()
	w, err := NewWalker(bytes.NewReader(data), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		p    Packet
		out  []byte
		args []byte // ARGS that waits for its BTRC
	)
	pk := packer{sizeFirst: to.sizeFirst, swapped: to.swapped}
	for {
		if err := w.Next(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Handshake != nil {
			pk.order = w.order
			pk.order.Big = to.big
			endian := byte(wire.LittleEndian)
			if to.big != to.lies {
				endian = wire.BigEndian
			}
			out = wire.AppendHandshake(out, to.version, p.Handshake.Arch, endian, p.Handshake.Pointer)
			continue
		}
		if p.Name == "OCFG" {
			continue
		}
		vals, rest, err := w.Fields(&p, nil)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%s: %v, rest %x", p.Name, err, rest)
		}
		packet := to.pack(pk, p.Code, vals)
		if to.document && p.Code == wire.ARGS {
			args = packet
			continue
		}
		out = append(append(out, packet...), args...)
		args = nil
	}
}

func (to target) pack(pk packer, code uint32, vals []Value) []byte {
	def := wire.Lookup(code)
	if to.buggy && def.Buggy() != 0 {
		code = def.Buggy()
	}
	if to.document && def.Code == wire.CALL {
		var ordered []Value
		for _, f := range def.Layouts[wire.CallDocument].Fields {
			i := slices.IndexFunc(vals, func(v Value) bool { return v.Field.Name == f.Name })
			ordered = append(ordered, vals[i])
		}
		vals = ordered
	}
	packet := pk.start(nil, code)
	for _, v := range vals {
		if v.Field.Since > to.version {
			continue
		}
		if to.exact && v.Field.Type == wire.String {
			v.Text.Form = TextExact
		}
		if to.exact && v.Field.Type == wire.Pairs {
			v.Texts = slices.Clone(v.Texts)
			for i := range v.Texts {
				v.Texts[i].Form = TextExact
			}
		}
		packet = pk.appendValue(packet, &v)
	}
	pk.end(packet)
	return packet
}

// Each trace of the corpus gives the same records when rewritten in any dialect.
func TestDialects(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus, "*.rtrace"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d traces, %v", len(files), err)
	}
	for _, file := range files {
		data := readFile(t, file)
		want, err := recordsOf(t, rewrite(t, data, targets[0]), targets[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range targets {
			t.Run(filepath.Base(file)+"/"+to.name, func(t *testing.T) {
				changed := rewrite(t, data, to)
				got, err := recordsOf(t, changed, to)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(want) {
					t.Fatalf("%d records, want %d", len(got), len(want))
				}
				for i := range want {
					w := payload(want[i])
					to.forget(w)
					if !reflect.DeepEqual(w, got[i]) {
						t.Fatalf("record %d (-want +got):\n%s", i, cmp.Diff(w, got[i]))
					}
				}
				checkTwin(t, changed)
			})
		}
	}
}

// forget removes what the version cannot hold.
func (to target) forget(r *trace.Record) {
	if to.version < wire.V13 {
		r.Resource.RefCount = false
	}
	if r.Kind == trace.KindProcess && to.version < wire.V12 {
		r.Process.Depth = -1
	}
}

// recordsOf decodes data, checks the dialect and returns the records after the header.
func recordsOf(t *testing.T, data []byte, to target) ([]*trace.Record, error) {
	t.Helper()
	d, recs, err := load(t, data, Options{Strict: to.version >= wire.V14 && (!to.document || to.version == wire.V14)})
	if err != nil {
		return nil, err
	}
	got, ptr32 := strings.CutSuffix(d.Stats().Dialect, ", 32-bit")
	if ptr32 != (d.w.order.Pointer == 4) || got != to.dialect {
		t.Errorf("dialect %q, want %q", d.Stats().Dialect, to.dialect)
	}
	if lies := len(d.Warnings()) > 0; lies != (to.lies || to.sizeFirst && to.version == wire.V20) {
		t.Errorf("warnings %q", d.Warnings())
	}
	out := make([]*trace.Record, 0, len(recs))
	for _, r := range recs[1:] {
		out = append(out, payload(r))
	}
	return out, nil
}

// If the calls do not decide, the framing does.
func TestCallLayoutWithoutEvidence(t *testing.T) {
	call := "0 0 CALL resource=1 context=0 timestamp=0 type=2 name=\"malloc\" size=16 id=32\n"
	for head, want := range map[string]trace.Call{
		textHead32: {Resource: 1, Size: 16, ID: 32},
		textDoc32:  {Resource: 0, Size: 32, ID: 16},
	} {
		_, recs, err := load(t, undump(t, head+call), Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := recs[1].Call
		if got := (trace.Call{Resource: c.Resource, Size: c.Size, ID: c.ID}); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// A free decides: only in the right layout is its size 0.
func TestCallLayoutByFree(t *testing.T) {
	text := "0 0 CALL resource=1 context=0 timestamp=0 type=2 name=\"open\" size=1 id=4\n" +
		"0 0 CALL resource=1 context=0 timestamp=0 type=1 name=\"close\" size=0 id=4\n"
	for _, head := range []string{textHead32, textDoc32} {
		_, recs, err := load(t, undump(t, head+text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c := recs[1].Call; c.Resource != 1 || c.Size != 1 || c.ID != 4 {
			t.Errorf("resource %d, size %d, id %d; want 1, 1, 4", c.Resource, c.Size, c.ID)
		}
	}
}

// A handshake within a stream is distinguished from a packet of 240 bytes, whose size
// begins with the same byte.
func TestSizeThatLooksLikeHandshake(t *testing.T) {
	name := strings.Repeat("x", 0xf0-4-4-2)
	head := "0 0 HANDSHAKE version=1.4 arch=\"i686\" endian=0 pointer=4\n0 0 LAYOUT size-first little-endian 4-byte-pointers\n"
	data := undump(t, head+textProc+"0 0 CTXR id=1 name=\""+name+"\"\n"+textCall+head+textCall)
	if i := bytes.Index(data, []byte("CTXR")); data[i-4] != wire.Magic {
		t.Fatalf("size %#x, want the magic byte", data[i-4])
	}
	_, recs, err := load(t, data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(recs), "header process context 1:alloc/0/0 header 1:alloc/0/0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each part of concatenated traces has its own dialect.
func TestConcatenatedDialects(t *testing.T) {
	multi := readFile(t, filepath.Join(corpus, "multi.rtrace"))
	var data []byte
	want := ""
	for _, to := range targets {
		part := rewrite(t, multi, to)
		_, recs, err := load(t, part, Options{})
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, part...)
		want += summary(recs) + "\n"
	}
	_, recs, err := load(t, data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.TrimPrefix(strings.ReplaceAll(summary(recs)+"\n", " header", "\nheader"), "\n")
	if got != want {
		t.Errorf("parts differ:\n%s", cmp.Diff(want, got))
	}
}
