package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/frametext"
)

// named writes a trace with the texts of rtrace resolve for its frames, which are tested
// against addr2line.
func named(t *testing.T, file, format string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "named."+format)
	if _, errOut, code := runRtrace("", "resolve", "-f", format, "-o", out, file); code != cli.OK {
		t.Fatal(code, errOut)
	}
	return out
}

// stacks returns the stacks of memory of a page from the innermost frame on, as texts of
// rtrace resolve, with their allocations.
func (p *pageData) stacks() []string {
	var out []string
	s := p.Resources[0].Stacks
	for i, n := range s.Node {
		var b strings.Builder
		for ; n > 0; n = p.Nodes.Parent[n] {
			f := p.Nodes.Frame[n]
			b.WriteString(" " + p.Texts[p.Frames.Function[f]])
			if file := p.Texts[p.Frames.File[f]]; file != "" {
				fmt.Fprintf(&b, " at %s:%d", file, p.Frames.Line[f])
			}
			if slices.Contains(p.Frames.Inlined, f) {
				b.WriteString(" inlined")
			}
		}
		out = append(out, fmt.Sprint(s.Uses[i][4:6], b.String()))
	}
	slices.Sort(out)
	return out
}

// TestReportInlined: the page has the inlined functions and lines of rtrace resolve, whether
// it names the frames itself or the trace has texts.
func TestReportInlined(t *testing.T) {
	file, _ := selfTrace(t)
	page := func(args ...string) *pageData {
		t.Helper()
		out, errOut, code := runRtrace("", append([]string{"report"}, args...)...)
		if code != cli.OK {
			t.Fatal(code, errOut)
		}
		return parsePage(t, out)
	}
	own, text := page("-r", "--show-wrappers", file), page("--resolve=false", "--show-wrappers", named(t, file, "text"))
	if d := cmp.Diff(text.stacks(), own.stacks()); d != "" {
		t.Errorf("(-texts +files):\n%s", d)
	}
	if n := len(own.Frames.Inlined); n < 10 {
		t.Errorf("%d inlined frames", n)
	}
	if plain := page("-r", "--lines=false", file); len(plain.Frames.Inlined) != 0 || slices.Max(plain.Frames.Line) != 0 {
		t.Errorf("without lines: %+v", plain.Frames)
	}
	// As many as in the texts: each is one into which another is inlined.
	texts, err := os.ReadFile(named(t, file, "text"))
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for line := range strings.Lines(string(texts)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ") // after the address
		for inner, outer := frametext.Outer(rest); outer != ""; inner, outer = frametext.Outer(rest) {
			name := frametext.Parse(inner).Function
			if rest = outer; !slices.ContainsFunc(own.Frames.Inlined, func(f int) bool { return strings.HasSuffix(own.Texts[own.Frames.Function[f]], name) }) {
				missing++
			}
		}
	}
	if missing > 0 {
		t.Errorf("%d inlined functions of the texts are not in the page", missing)
	}
}

// TestProfilesOfTexts: a trace whose frames have texts gives the same profile as the files,
// with inlined functions.
func TestProfilesOfTexts(t *testing.T) {
	file, _ := selfTrace(t)
	for _, format := range []string{"text", "jsonl"} {
		texts := named(t, file, format)
		profile := func(args ...string) string {
			t.Helper()
			out, errOut, code := runRtrace("", append([]string{"convert", "-f", "folded", "--value", "alloc_space"}, args...)...)
			if code != cli.OK {
				t.Fatal(code, errOut)
			}
			return out
		}
		all := profile("-r", "--caller", "innermost", file)
		// Texts have () after names that have no parameters in the file.
		plain := strings.NewReplacer("()", "")
		if d := cmp.Diff(plain.Replace(all), plain.Replace(profile("--caller", "innermost", texts))); d != "" {
			t.Errorf("folded (-files +%s):\n%s", format, d)
		}
		// The raw form of pprof shows inlined lines as a second function of one location.
		raw := pprofTool(t, "-raw", profileOf(t, texts))
		_, raw, _ = strings.Cut(raw, "\nLocations\n")
		inlined := 0
		for line := range strings.Lines(raw) {
			if fields := strings.Fields(line); len(fields) > 1 && !strings.HasSuffix(fields[0], ":") && strings.Contains(line, " s=") {
				inlined++
			}
		}
		if inlined < 5 {
			t.Errorf("pprof of %s: %d inlined functions in\n%s", format, inlined, raw)
		}
	}
}
