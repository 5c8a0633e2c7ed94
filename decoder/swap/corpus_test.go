package swap_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/swap"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

const corpus = "../../testdata/corpus/swap"

// vectors returns the names of the files of the corpus, without their suffix, and those
// of another folder with such files if there is one.
func vectors(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(corpus + "/*.bin")
	if err != nil || len(files) < 54 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if folder := os.Getenv("RTRACE_CORPUS"); folder != "" {
		more, err := filepath.Glob(filepath.Join(folder, "swap/*.bin"))
		if err != nil || len(more) == 0 {
			t.Fatalf("RTRACE_CORPUS has no vectors of SWAP (%v)", err)
		}
		files = append(files, more...)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".bin")
	}
	return files
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// vector holds the JSON of a vector.
type vector struct {
	Hex    string
	Header struct {
		ID       string
		Name     string
		Sequence uint32
		Time     struct{ Sec, Nsec uint32 }
		Length   int
	}
	Fields   map[string]any
	Needs    struct{ NCPU, Devices int }
	Messages []struct {
		Offset, Length int64
		Vector         string
	}
	Expected any
	Dialect  string
}

func load(t testing.TB, path string) (v vector) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(contents(t, path+".json")))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// Every vector decodes to the fields in its JSON.
func TestVectors(t *testing.T) {
	n := 0
	for _, path := range vectors(t) {
		v := load(t, path)
		if v.Fields == nil {
			continue
		}
		n++
		t.Run(filepath.Base(path), func(t *testing.T) {
			data := contents(t, path+".bin")
			if want, err := hex.DecodeString(v.Hex); err != nil || !bytes.Equal(data, want) {
				t.Fatalf("the vector contradicts itself: %v", err)
			}
			s, err := swap.NewScanner(bytes.NewReader(data), swap.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var m swap.Message
			if err := s.Next(&m); err != nil {
				t.Fatal(err)
			}
			if id := fmt.Sprintf("0x%04x", m.ID); id != v.Header.ID || m.Sequence != v.Header.Sequence || len(m.Data) != v.Header.Length ||
				m.Seconds != v.Header.Time.Sec || m.Nanos != v.Header.Time.Nsec || m.Formula != (v.Dialect == "document_time") {
				t.Errorf("header %+v, want %+v", m, v.Header)
			}
			p, err := swap.NewParser(swap.Options{CPUs: v.Needs.NCPU, Devices: v.Needs.Devices})
			if err != nil {
				t.Fatal(err)
			}
			got := object(t, p, &m)
			want := v.Fields
			delete(want, "candidates") // the number of other layouts that fit
			if m.ID != wire.ProcessStatusInfo {
				delete(got, "layout")
			}
			if d := cmp.Diff(canonical(t, want), canonical(t, got)); d != "" {
				t.Errorf("fields (-want +got):\n%s", d)
			}
			if err := s.Next(&m); !errors.Is(err, io.EOF) {
				t.Errorf("behind it: %v", err)
			}
		})
	}
	if n < 48 {
		t.Errorf("%d vectors", n)
	}
}

// canonical returns v as JSON text in which equal numbers are written equally.
func canonical(t *testing.T, v any) any {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var back any
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// object returns the fields of a message in the form of the vectors' JSON.
func object(t *testing.T, p *swap.Parser, m *swap.Message) map[string]any {
	t.Helper()
	var f swap.Fields
	err := p.Parse(m, &f)
	if f.Message == nil {
		return map[string]any{"raw": hex.EncodeToString(m.Data)}
	}
	if err != nil || f.Flawed {
		t.Fatalf("%v, flawed %v", err, f.Flawed)
	}
	o := map[string]any{"layout": f.Layout.Name}
	tail := o
	if f.Message.Tail != "" && f.Layout == &f.Message.Layouts[0] {
		tail = map[string]any{}
		o[f.Message.Tail] = tail
	}
	values := f.Values
	for i := range f.Layout.Fields {
		field := &f.Layout.Fields[i]
		if len(values) == 0 || values[0].Field != field {
			continue
		}
		into := o
		if i >= wire.Common && f.Message.Tail != "" {
			into = tail
		}
		name := field.Name
		var x any
		x, values = value(values)
		switch name {
		case "reserved1":
			o["reserved"] = []any{x}
			continue
		case "reserved2":
			o["reserved"] = append(o["reserved"].([]any), x)
			continue
		case "data":
			if m.ID == wire.ProbeNetwork {
				name = "data_hex"
			}
		}
		into[name] = x
	}
	if len(values) != 0 {
		t.Errorf("%d values are left", len(values))
	}
	return o
}

// value returns the first value in the form of JSON, and the values after it.
func value(values []swap.Value) (any, []swap.Value) {
	v, rest := &values[0], values[1:]
	if v.Letter != 0 {
		return item(v), rest
	}
	switch v.Field.Type {
	case wire.I32, wire.I64:
		return int64(v.Num), rest
	case wire.Hex32, wire.Pointer:
		return fmt.Sprintf("%#x", v.Num), rest
	case wire.Float:
		return math.Float32frombits(uint32(v.Num)), rest
	case wire.Double:
		return math.Float64frombits(v.Num), rest
	case wire.Time:
		return map[string]any{"sec": v.Num, "nsec": v.Nanos}, rest
	case wire.IPv4:
		return fmt.Sprintf("%d.%d.%d.%d", byte(v.Num), byte(v.Num>>8), byte(v.Num>>16), byte(v.Num>>24)), rest
	case wire.String:
		return string(v.Text), rest
	case wire.Sized, wire.Rest:
		return hex.EncodeToString(v.Text), rest
	case wire.Items, wire.List:
		list := []any{}
		for range v.Num {
			var x any
			if elements := v.Field.Elements; v.Field.Type == wire.Items || elements[0].Name == "" {
				x, rest = value(rest)
			} else {
				o := map[string]any{}
				for i := range elements {
					o[elements[i].Name], rest = value(rest)
				}
				x = o
			}
			list = append(list, x)
		}
		return list, rest
	}
	return v.Num, rest
}

func item(v *swap.Value) any {
	o := map[string]any{"type": string(v.Letter)}
	switch v.Letter {
	case 'b':
		o["value"] = v.Num != 0
	case 'c':
		o["value"] = v.Num
	case 'd', 'x':
		o["value"] = int64(v.Num)
	case 'p':
		o["value"] = fmt.Sprintf("%#x", v.Num)
	case 'f':
		o["value"] = math.Float32frombits(uint32(v.Num))
	case 'w':
		o["value"] = math.Float64frombits(v.Num)
	case 's':
		o["value"] = string(v.Text)
	case 'D', 'F', 'W':
		list := []any{}
		for b := v.Text; len(b) > 0; {
			switch v.Letter {
			case 'D':
				list, b = append(list, int32(binary.LittleEndian.Uint32(b))), b[4:]
			case 'F':
				list, b = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b))), b[4:]
			default:
				list, b = append(list, math.Float64frombits(binary.LittleEndian.Uint64(b))), b[8:]
			}
		}
		o["value"] = map[string]any{"pointer": fmt.Sprintf("%#x", v.Num), "elements": list}
	}
	return o
}

// Every vector, damaged or not, is dumped and restored to the same bytes. Those that
// are not damaged are dumped field by field.
func TestDumpVectors(t *testing.T) {
	for _, path := range vectors(t) {
		name := filepath.Base(path)
		v := load(t, path)
		t.Run(name, func(t *testing.T) {
			data := contents(t, path+".bin")
			var text, back bytes.Buffer
			damaged, err := swap.Dump(&text, bytes.NewReader(data), swap.Options{})
			if e := swap.Undump(&back, bytes.NewReader(text.Bytes())); e != nil || !bytes.Equal(back.Bytes(), data) {
				t.Fatalf("undump: %v, equal %v\n%s", e, bytes.Equal(back.Bytes(), data), text.String())
			}
			_, isText := v.Expected.(string) // the vector is damaged
			bad := isText && strings.HasPrefix(v.Expected.(string), "error")
			if failed := err != nil || damaged > 0; failed != (bad && len(data) > 0) {
				t.Errorf("%d damaged, %v", damaged, err)
			}
			if syntax, ok := errors.AsType[*trace.SyntaxError](err); err != nil && (!ok || syntax.Offset > int64(len(data))) {
				t.Errorf("%v", err)
			}
			if raw := strings.Contains(text.String(), " RAW "); raw && !bad {
				t.Errorf("not by its fields:\n%s", text.String())
			}
			if raw := strings.Contains(text.String(), " MESSAGE "); raw && !bad && name != "unknown_id" && name != "stream_session" {
				t.Errorf("not by its fields:\n%s", text.String())
			}
		})
	}
}
