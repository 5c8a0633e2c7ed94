package swapevents

import (
	"bytes"
	"strings"
	"testing"

	"rtrace-bpf/tracer/record"
)

// The report has each site with its frames, in the order of the sites. Names cannot control
// a terminal.
func TestLeaks(t *testing.T) {
	l := Leaks{
		PID: 7, Name: "x\x1b[2J", Stats: record.Stats{LiveBlocks: 3, LiveBytes: 96},
		Sites: []record.LiveSite{{Frames: []uint64{0x10, 0x20}, Blocks: 2, Bytes: 64}, {Blocks: 1, Bytes: 32}},
		Frame: func(addr uint64) string { return map[uint64]string{0x10: "inner()", 0x20: "outer()\x1b"}[addr] },
	}
	text := leakText(t, &l)
	rest := text
	for _, part := range []string{
		"process 7 ", "3 blocks, 96 bytes", "\n64 bytes in 2 blocks from\n", "    0x10 inner()\n", "    0x20 outer()",
		"\n32 bytes in 1 blocks from\n", "    no stack was recorded\n",
	} {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is missing, or in another place, in\n%s", part, text)
		}
		rest = after
	}
	if rest != "" || strings.ContainsRune(text, 0x1b) {
		t.Errorf("%q", text)
	}
	if strings.Contains(text, "lost") || strings.Contains(text, "Not among them") {
		t.Errorf("nothing was lost:\n%s", text)
	}
}

// What makes the report uncertain is in it, and of too many sites the number is left.
func TestUncertainLeaks(t *testing.T) {
	l := Leaks{
		Losses: "5 ring full", Stats: record.Stats{UnknownBlocks: 4, UnknownBytes: 128},
		Sites: make([]record.LiveSite, maxLeakSites+3),
	}
	text := leakText(t, &l)
	for _, part := range []string{"lost (5 ring full)", "4 blocks, 128 bytes", "\n3 more call sites"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in the report", part)
		}
	}
	if n := strings.Count(text, " blocks from\n"); n != maxLeakSites {
		t.Errorf("%d call sites", n)
	}
}

func leakText(t *testing.T, l *Leaks) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
