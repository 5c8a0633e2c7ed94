package nettrace_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/trace"
)

func dump(data []byte, o nettrace.Options) (string, error) {
	var out strings.Builder
	err := nettrace.Dump(&out, bytes.NewReader(data), o)
	return out.String(), err
}

func undump(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := nettrace.Undump(&out, strings.NewReader(text)); err != nil {
		t.Fatalf("%v\n%.2000s", err, text)
	}
	return out.Bytes()
}

// checkDump checks that Undump restores data from its dump.
func checkDump(t testing.TB, data []byte) string {
	t.Helper()
	text, err := dump(data, nettrace.Options{})
	if err != nil {
		checkSyntax(t, err)
	}
	if got := undump(t, text); !bytes.Equal(got, data) {
		at := 0
		for at < min(len(got), len(data)) && got[at] == data[at] {
			at++
		}
		t.Fatalf("%d bytes of %d, other ones from %#x on, of\n%.3000s", len(got), len(data), at, text)
	}
	return text
}

func checkSyntax(t testing.TB, err error) {
	t.Helper()
	if _, ok := errors.AsType[*trace.SyntaxError](err); !ok {
		t.Fatal(err)
	}
}

// Undump restores every byte of every stream, whole, cut and damaged.
func TestDumpCorpus(t *testing.T) {
	for _, file := range streams(t) {
		data := contents(t, file)
		text := checkDump(t, data)
		name := filepath.Base(file)
		// A well-formed stream, by the verdict of other readers, is dumped as fields.
		if verdictOf(t, file).TraceEvent.Error == nil && strings.Contains(text, " BYTES ") {
			t.Errorf("%s: not everything is in words", name)
		}
		if strings.Contains(file, "/v4") && countRaw(text, "EVENT") > 0 {
			t.Errorf("%s: an event has its bytes", name)
		}
		data = data[:min(len(data), 3000)]
		for cut := 0; cut < len(data); cut += max(1, len(data)/40) {
			checkDump(t, data[:cut])
			damaged := bytes.Clone(data)
			damaged[cut] ^= 0x55
			checkDump(t, damaged)
		}
	}
}

// countRaw counts the lines with a word that have their bytes.
func countRaw(text, word string) (n int) {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); words[2] == word && strings.Contains(line, " raw=") {
			n++
		}
	}
	return n
}

// Changes in the text are in the restored stream: names, payloads, removed lines, and
// values that are written as differences.
func TestUndumpChanged(t *testing.T) {
	text := checkDump(t, contents(t, recorded))
	lines := strings.SplitAfter(text, "\n")
	var kept []string
	events, changed := 0, false
	for _, line := range lines {
		if strings.Contains(line, " EVENT ") {
			if events++; events == 3 {
				continue
			}
			if head, _, _ := strings.Cut(line, " payload="); events == 4 {
				line, changed = head+" payload=0102030405\r\n", true
			}
		}
		kept = append(kept, line, "\n", "# by hand\n")
	}
	got := scan(t, bytes.NewReader(undump(t, strings.Join(kept, ""))), nettrace.Options{Strict: true})
	want := verdictOf(t, recorded).Structure.Events - 1
	if !changed || got.events != want || got.lost != 1 || got.stats.Unknown != 0 {
		t.Errorf("%d events, %d lost, %v, want %d and 1", got.events, got.lost, got.err, want)
	}
	again, err := dump(undump(t, strings.Join(kept, "")), nettrace.Options{})
	if err != nil || !strings.Contains(again, " payload=0102030405\n") {
		t.Errorf("%v, the payload is not the one of the text", err)
	}
}

func TestUndumpErrors(t *testing.T) {
	head, err := dump(contents(t, recorded)[:headV4], nettrace.Options{})
	if err == nil || !nettrace.IsDump(head) {
		t.Fatalf("%v, %q", err, head)
	}
	head, _, _ = strings.Cut(head, "\n")
	const event = `0 0 BLOCK name="Event" flags=1 first=0 last=0` + "\n"
	for _, tt := range []struct{ lines, line, err string }{
		{"nonsense", "line 2", "not a line"},
		{"0 0 WHAT", "line 2", `"WHAT" is no word`},
		{"0 0 EVENT metadata=1", "line 2", "not in a block Event"},
		{`0 0 BLOCK name="Thread"`, "line 2", "unknown"},
		{`0 0 BLOCK name="Event" flags=1 first=0`, "line 2", "last= is missing"},
		{`0 0 BLOCK name="Event`, "line 2", "text of field name"},
		{event + "0 0 EVENT payload=0 metadata=1", "line 3", "base 16"},
		{event + "0 0 EVENT payload=00 metadata=x", "line 3", "not a number"},
		{event + "0 0 EVENT metadata=5000000000", "line 3", "payload"},
		{event + "0 0 STACK frames=1", "line 3", "not in a block Stack"},
		{event + "0 0 BYTES data=0g", "line 3", "base 16"},
		{event + "0 0 EVENT =", "line 3", "no field"},
		{event + "0 0 CUT size=99999999", "line 3", "not a number up to"},
		{`0 0 BLOCK name="Metadata" flags=1 first=0 last=0` + "\n0 0 METADATA id=1", "line 3", "raw= is missing"},
		{"0 0 CUT size=1\n0 0 CUT size=1", "line 3", "follows no block"},
		{"0 0 TRACE major=4 minor=0 time=1", "line 2", "time of 1 numbers"},
	} {
		var out bytes.Buffer
		err := nettrace.Undump(&out, strings.NewReader(head+"\n"+tt.lines+"\n"))
		checkSyntax(t, err)
		if !strings.Contains(err.Error(), tt.line+":") || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tt.lines, err)
		}
		if !bytes.HasPrefix(out.Bytes(), contents(t, recorded)[:headV4-1]) {
			t.Errorf("%s: what is before it is missing", tt.lines)
		}
	}
}
