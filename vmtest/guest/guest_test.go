package guest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func all(t *testing.T, console string) ([]Event, error) {
	t.Helper()
	r := NewReader(strings.NewReader(console), "#token")
	var events []Event
	for {
		e, err := r.Next()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// The host reads what the guest wrote, even if the console adds carriage returns and a job's
// last line is incomplete.
func TestRoundTrip(t *testing.T) {
	profile := make([]byte, 5000)
	for i := range profile {
		profile[i] = byte(rand.Uint32())
	}
	var b bytes.Buffer
	b.WriteString("SeaBIOS\nBooting\n")
	w := NewWriter(&b, "#token")
	_, printErr := io.WriteString(w, "early\n")
	for _, err := range []error{
		printErr, w.Up("6.12.1-cloud"), w.Start(0), text(w, "=== RUN TestA\nno end"), w.End(0, 0),
		w.Start(1), text(w, "FAIL\n"), w.End(1, 2), w.Error(1, errors.New("read \"it\"")),
		w.File(1, "/tmp/a b", profile), w.File(1, "/empty", nil), w.Over(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("reboot: Power down\n")
	want := []Event{
		{Kind: Console, Text: "SeaBIOS\n"},
		{Kind: Console, Text: "Booting\n"},
		{Kind: Console, Text: "early\n"},
		{Kind: Up, Text: "6.12.1-cloud"},
		{Kind: Start},
		{Kind: Output, Text: "=== RUN TestA\n"},
		{Kind: Output, Text: "no end\n"},
		{Kind: End},
		{Kind: Start, Job: 1},
		{Kind: Output, Job: 1, Text: "FAIL\n"},
		{Kind: End, Job: 1, Status: 2},
		{Kind: Error, Job: 1, Text: `read "it"`},
		{Kind: File, Job: 1, Text: "/tmp/a b", Data: profile},
		{Kind: File, Job: 1, Text: "/empty", Data: []byte{}},
		{Kind: Over},
		{Kind: Console, Text: "reboot: Power down\n"},
	}
	for _, console := range []string{b.String(), strings.ReplaceAll(b.String(), "\n", "\r\n")} {
		got, err := all(t, console)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	}
}

func text(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}

// A program cannot write lines of init, nor can an overlong line.
func TestOnlyInitSpeaks(t *testing.T) {
	got, err := all(t, "#token start 0\n#other end 0 0\n say #token end 0 0\n"+strings.Repeat("x", maxLine)+"#token end 0 0\n#token end 0 0")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range got {
		if e.Kind == End {
			t.Errorf("the job ended: %+v", e)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d events", len(got))
	}
}

func TestDamage(t *testing.T) {
	var b bytes.Buffer
	if err := NewWriter(&b, "#token").File(0, "/f", []byte("content")); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(b.String(), "\n")
	tests := map[string]string{
		"no number":        "#token start x\n",
		"unknown word":     "#token stop 0\n",
		"no status":        "#token end 0\n",
		"data of no file":  "#token data QQ==\n",
		"end in a file":    lines[0] + "#token end 0 0\n",
		"damaged data":     lines[0] + "#token data !\n",
		"not compressed":   lines[0] + "#token data QQ==\n" + lines[2],
		"lost data":        lines[0] + lines[2],
		"another checksum": lines[0] + lines[1] + "#token sum 00\n",
	}
	for name, console := range tests {
		t.Run(name, func(t *testing.T) {
			if events, err := all(t, console); err == nil {
				t.Errorf("no error, but %+v", events)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	want := &Plan{Token: "#token", Jobs: []Job{{Name: "n", Dir: "/d", Args: []string{"a"}, Env: []string{"A=b"}, Files: []string{"/f"}}}}
	b, err := want.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadPlan(bytes.NewReader(b))
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for _, bad := range []string{"", "{}", "[]"} {
		if _, err := ReadPlan(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is no plan", bad)
		}
	}
}
