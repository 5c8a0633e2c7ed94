package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/replay"
	"rtrace-bpf/trace"
)

// The figures of a program agree with those of mpatrol's own mptrace for its
// files.
func TestCorpus(t *testing.T) {
	const dir = "../../testdata/corpus/mpatrol/real"
	files, err := filepath.Glob(filepath.Join(dir, "*.trace"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files in %s, %v", len(files), dir, err)
	}
	for _, file := range files {
		var stats []byte
		for _, tool := range []string{"fixed64", "asis64", "asis32"} { // the first one can read all files
			text, err := os.ReadFile(strings.TrimSuffix(file, ".trace") + "." + tool + ".stats.txt")
			if err == nil && strings.Contains(string(text), "peak:") {
				stats = text
				break
			}
		}
		if stats == nil {
			t.Errorf("%s: no statistics", file)
			continue
		}
		want := func(label, format string, to ...any) {
			_, rest, _ := strings.Cut(string(stats), label)
			if _, err := fmt.Sscanf(strings.TrimSpace(rest), format, to...); err != nil {
				t.Fatalf("%s: %s: %v", file, label, err)
			}
		}
		var s replay.Stats
		want("unfreed:", "%d (%d", &s.LeftBlocks, &s.LeftBytes)
		want("peak:", "%d (%d", &s.PeakBlocks, &s.PeakBytes)

		in, err := decoder.OpenFile(file, decoder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := replay.NewBuilder(replay.OrderDependencies)
		if err := trace.Copy(b, in); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		in.Close()
		p, err := b.Program()
		if err != nil {
			t.Fatal(err)
		}
		got := replay.Stats{
			LeftBlocks: p.Stats.LeftBlocks, LeftBytes: p.Stats.LeftBytes, PeakBlocks: p.Stats.PeakBlocks, PeakBytes: p.Stats.PeakBytes,
		}
		if got != s {
			t.Errorf("%s: %+v, want %+v", file, got, s)
		}
	}
}
