package jsonl_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/decoder/jsonl"
	"rtrace-bpf/trace"
)

const first = `{"format":"rtrace-jsonl","version":1}` + "\n"

func load(text string, o jsonl.Options) ([]*trace.Record, error) {
	return readAll(jsonl.New(strings.NewReader(text), o))
}

func TestSpellings(t *testing.T) {
	want := &trace.Record{Kind: trace.KindCall, Time: 7, Call: trace.Call{
		Op: trace.OpFree, Function: "free", ID: 255, Stack: trace.Stack{Frames: []uint64{16, 17}},
	}}
	for name, line := range map[string]string{
		"canonical":      `{"kind":"call","time":7,"op":"free","function":"free","id":"0xff","stack":["0x10","0x11"]}`,
		"sorted keys":    `{"function":"free","id":"0xff","kind":"call","op":"free","stack":["0x10","0x11"],"time":7}`,
		"white space":    "  { \"kind\" : \"call\" ,\t\"time\": 7, \"op\":\"free\" , \"function\":\"free\", \"id\":\"0xff\", \"stack\" : [ \"0x10\" , \"0x11\" ] } \r",
		"escapes":        `{"\u006bind":"c\u0061ll","time":7,"op":"free","function":"fr\u0065e","id":"0\u0078FF","stack":["0x10","0x11"]}`,
		"numbers":        `{"kind":"call","time":7,"op":2,"function":"free","id":255,"stack":[16,17]}`,
		"zeros, falses":  `{"kind":"call","time":7,"op":"free","function":"free","id":"0x00ff","stack":["0x10","0x11"],"size":0,"pid":-0,"frame_pointer":false,"args":[],"names":[]}`,
		"the last holds": `{"kind":"call","time":8,"time":7,"op":"free","function":"free","id":"0xff","stack":["0x1"],"stack":["0x10","0x11"],"kind":"call"}`,
	} {
		got, err := load(first+"\n \n"+line+"\n\n", jsonl.Options{Strict: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]*trace.Record{want}, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for _, tt := range []struct {
		name, line string
		at         int // offset in the line
		is         error
		text       string
	}{
		{"not an object", `[1]`, 0, trace.ErrMalformed, `'[' instead of '{'`},
		{"no kind", `{"time":1}`, 10, trace.ErrMalformed, "without a kind"},
		{"empty object", `{}`, 2, trace.ErrMalformed, "without a kind"},
		{"unknown kind", `{"kind":"cell"}`, 8, trace.ErrUnsupported, `kind "cell"`},
		{"none", `{"kind":"none"}`, 8, trace.ErrUnsupported, `kind "none"`},
		{"number as kind", `{"kind":9}`, 8, trace.ErrMalformed, `'9' instead of '"'`},
		{"two kinds", `{"kind":"end","kind":"exec"}`, 27, trace.ErrMalformed, "two kinds"},
		{"after the object", `{"kind":"end"} x`, 15, trace.ErrMalformed, "after the object"},
		{"unclosed", `{"kind":"end"`, 14, trace.ErrMalformed, "line ends inside a value"},
		{"open string", `{"kind":"end`, 12, trace.ErrMalformed, "control character"},
		{"comma at the end", `{"kind":"end",}`, 14, trace.ErrMalformed, `'}' instead of '"'`},
		{"no comma", `{"kind":"end" "pid":1}`, 14, trace.ErrMalformed, `'"' instead of ','`},
		{"null", `{"kind":"end","pid":null}`, 20, trace.ErrMalformed, "instead of an integer"},
		{"fraction", `{"kind":"end","pid":1.0}`, 21, trace.ErrMalformed, "not an integer"},
		{"exponent", `{"kind":"end","pid":1e3}`, 21, trace.ErrMalformed, "not an integer"},
		{"leading zero", `{"kind":"end","pid":01}`, 22, trace.ErrMalformed, "leading zero"},
		{"pid too big", `{"kind":"end","pid":2147483648}`, 30, trace.ErrMalformed, "out of range"},
		{"pid too small", `{"kind":"end","pid":-2147483649}`, 31, trace.ErrMalformed, "out of range"},
		{"time too big", `{"kind":"end","time":9223372036854775808}`, 40, trace.ErrMalformed, "out of range"},
		{"size too big", `{"kind":"call","size":18446744073709551616}`, 41, trace.ErrMalformed, "out of range"},
		{"negative size", `{"kind":"call","size":-1}`, 24, trace.ErrMalformed, "out of range"},
		{"address too long", `{"kind":"call","id":"0x11112222333344445"}`, 20, trace.ErrMalformed, "not an address"},
		{"address without 0x", `{"kind":"call","id":"12"}`, 20, trace.ErrMalformed, "not an address"},
		{"address", `{"kind":"call","id":"0xg"}`, 20, trace.ErrMalformed, "not an address"},
		{"empty address", `{"kind":"call","id":"0x"}`, 20, trace.ErrMalformed, "not an address"},
		{"op", `{"kind":"call","op":"steal"}`, 20, trace.ErrMalformed, `unknown name "steal"`},
		{"op number", `{"kind":"call","op":256}`, 23, trace.ErrMalformed, "out of range"},
		{"bool", `{"kind":"exit","process":1}`, 25, trace.ErrMalformed, "neither true nor false"},
		{"word", `{"kind":"exit","process":yes}`, 25, trace.ErrMalformed, "not a value"},
		{"odd hex", `{"kind":"opaque","data":"012"}`, 24, trace.ErrMalformed, "odd number"},
		{"bad hex", `{"kind":"opaque","data":"0x12"}`, 24, trace.ErrMalformed, "not hexadecimal"},
		{"fewer names", `{"kind":"call","stack":[1,2],"names":["a"]}`, 44, trace.ErrMalformed, "2 frames but 1 frame names"},
		{"bad escape", `{"kind":"comment","text":"\x"}`, 28, trace.ErrMalformed, `escape \x`},
		{"bad digits", `{"kind":"comment","text":"\u12g4"}`, 30, trace.ErrMalformed, "in an escape"},
		{"half a pair", `{"kind":"comment","text":"\ud834"}`, 32, trace.ErrMalformed, "half a character"},
		{"wrong pair", `{"kind":"comment","text":"\ud834\u0041"}`, 38, trace.ErrMalformed, "half a character"},
		{"low half", `{"kind":"comment","text":"\udc00"}`, 32, trace.ErrMalformed, "half a character"},
		{"too deep", `{"kind":"end","x":` + deep + `}`, 82, trace.ErrLimit, "nested"},
		{"bracket", `{"kind":"end","x":[1}}`, 20, trace.ErrMalformed, `'}' instead of ','`},
		{"unknown value", `{"kind":"end","x":tru}`, 18, trace.ErrMalformed, "not a value"},
		{"unknown number", `{"kind":"end","x":-}`, 18, trace.ErrMalformed, "not a value"},
		{"byte 0", "{\"kind\":\"end\"\x00}", 13, trace.ErrMalformed, "unexpected byte 0"},
	} {
		_, err := load(first+tt.line+"\n"+`{"kind":"end"}`+"\n", jsonl.Options{})
		syntax, ok := errors.AsType[*trace.SyntaxError](err)
		if !ok {
			t.Errorf("%s: error is %v", tt.name, err)
			continue
		}
		if got := int(syntax.Offset) - len(first); got != tt.at || !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: at %d: %v; want at %d: %v (%s)", tt.name, got, err, tt.at, tt.is, tt.text)
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	text := first + `{"kind":"end","pid":3,"later":{"a":[1,-2.5e3,true,null,{"b":"\n"}],"c":{}},"more":[],"tid":4}` + "\n"
	got, err := load(text, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*trace.Record{{Kind: trace.KindEnd, PID: 3, TID: 4}}, got); diff != "" {
		t.Error(diff)
	}
	_, err = load(text, jsonl.Options{Strict: true})
	if _, ok := errors.AsType[*trace.SyntaxError](err); !ok || !strings.Contains(err.Error(), `unknown key "later"`) {
		t.Errorf("strict: %v", err)
	}
	// A key of another kind is unknown.
	if _, err = load(first+`{"kind":"end","size":3}`+"\n", jsonl.Options{Strict: true}); err == nil {
		t.Error("strict: a size is taken in an end record")
	}
}

func TestNotUTF8(t *testing.T) {
	for _, text := range []string{"a\xff", "\xffa\\n", "\\n\xff"} {
		line := first + `{"kind":"comment","text":"` + text + "\"}\n"
		got, err := load(line, jsonl.Options{})
		if want := strings.ReplaceAll(text, `\n`, "\n"); err != nil || len(got) != 1 || got[0].Comment != want {
			t.Errorf("tolerant: %v, %v", got, err)
		}
		if _, err := load(line, jsonl.Options{Strict: true}); !errors.Is(err, trace.ErrMalformed) {
			t.Errorf("strict: %v", err)
		}
	}
}

func TestFormatLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		is   error
	}{
		{"", trace.ErrTruncated},
		{"\n\n", trace.ErrTruncated},
		{`{"format":"rtrace-jsonl","version":2}` + "\n", trace.ErrUnsupported},
		{`{"format":"rtrace-jsonl"}` + "\n", trace.ErrUnsupported},
		{`{"format":"other","version":1}` + "\n", trace.ErrMalformed},
		{`{"kind":"end"}` + "\n", trace.ErrMalformed},
		{first, nil},
		{strings.TrimSpace(first), nil},
		{"\n" + `{ "version":1, "made":"by hand", "format":"rtrace-jsonl" }` + "\n", nil},
	} {
		if _, err := load(tt.text, jsonl.Options{}); !errors.Is(err, tt.is) {
			t.Errorf("%q: %v, want %v", tt.text, err, tt.is)
		}
	}
}

func TestErrorsAreSticky(t *testing.T) {
	r := jsonl.New(strings.NewReader(first+"x\n"+`{"kind":"end"}`+"\n"), jsonl.Options{})
	var rec trace.Record
	err := r.ReadRecord(&rec)
	if err == nil || r.ReadRecord(&rec) != err {
		t.Errorf("got %v, then %v", err, r.ReadRecord(&rec))
	}
}

func TestReadErrorsPassThrough(t *testing.T) {
	broken := errors.New("broken disk")
	r := jsonl.New(io.MultiReader(strings.NewReader(first+`{"kind":"end"}`+"\n"), iotest.ErrReader(broken)), jsonl.Options{})
	got, err := readAll(r)
	if _, syntax := errors.AsType[*trace.SyntaxError](err); !errors.Is(err, broken) || syntax || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
	r = jsonl.New(stuck{}, jsonl.Options{})
	if _, err := readAll(r); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that never reads: %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// endless reads as a line that never ends.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	e.read += len(b)
	return copy(b, bytes.Repeat([]byte(" "), len(b))), nil
}

func TestEndlessLine(t *testing.T) {
	var in endless
	_, err := readAll(jsonl.New(&in, jsonl.Options{}))
	if !errors.Is(err, trace.ErrLimit) {
		t.Errorf("got %v", err)
	}
	if in.read > 64<<20 {
		t.Errorf("read %d bytes", in.read)
	}
}
