package digestview

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/verdict"
)

// someVerdicts returns a suspect with a hostile name, and a call site that is steady.
func someVerdicts() *Verdicts {
	frame := func(name string) sites.Frame { return sites.Frame{Place: sites.Place{Function: name}} }
	return &Verdicts{
		Observed: verdict.Observation{Judged: true, Time: time.Minute},
		Suspects: []Site{{
			Name: hostile, Where: "at " + hostile, Frames: []sites.Frame{frame(hostile), frame("main")},
			Trend: trend.Trend{Kind: trend.Growing, Live: live.Amount{Blocks: 2300, Bytes: 1 << 20}, Allocated: 2300, Blocks: trend.Rate{PerSecond: 28}, Bytes: trend.Rate{PerSecond: 14 << 10}, Start: true},
		}},
		Steady: []Site{{Name: "cache_put", Frames: []sites.Frame{frame("cache_put")}, Trend: trend.Trend{Kind: trend.Level, Live: live.Amount{Blocks: 200, Bytes: 4096}, Since: 3e9}}},
		More:   4,
	}
}

func pageWith(t *testing.T, r *digest.Result, v *Verdicts) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteHTML(&out, r, Options{File: "t", Format: "jsonl 1", KnowsLoss: true, Verdicts: v}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// inOrder checks that texts follow each other in a page.
func inOrder(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, after, ok := strings.Cut(page, text)
		if !ok {
			t.Fatalf("no %q, or not in its place", text)
		}
		page = after
	}
}

// Suspects come before everything else, in the words of package verdict; the memory follows, and
// then what is steady. Names do not become markup.
func TestVerdictsLead(t *testing.T) {
	r := newWorld(300).result()
	r.RSS = &rss.Growth{Start: 10 << 20, End: 13 << 20, Live: rss.Live{Blocks: 2300, Bytes: 2 << 20, UnknownBlocks: 7, UnknownBytes: 4096}}
	v := someVerdicts()
	page := pageWith(t, r, v)
	words := verdict.Text(&v.Suspects[0].Trend)
	inOrder(t, page, `<section class="verdict"`, sentence(words), "1 MiB in 2,300 blocks", "10 MiB at the start, 13 MiB at the end: it grew by 3 MiB", "2 MiB allocated in the recording and still live, in 2,300 blocks; 4 KiB more may be live or freed",
		`<details class="steady"><summary>Other call sites with live blocks: 5<`, "level at 200 blocks since 00:03", "cache_put", "4 more call sites", "Program", "About this trace", `id="main"`)
	if body, _, _ := strings.Cut(page, "<script"); strings.Contains(body, "<img") {
		t.Error("a name became markup")
	}
}

// A program with many suspects shows three of them; the others are folded away, in their order and
// with their sum. One more than three is shown. Names are short, and whole as titles.
func TestManySuspectsAreFolded(t *testing.T) {
	r := newWorld(300).result()
	v := someVerdicts()
	one := v.Suspects[0]
	one.Name, one.Where = "void std::vector<int, std::allocator<int> >::push_back(int const&)", ""
	v.Suspects = []Site{one, one, one, one}
	if page := pageWith(t, r, v); strings.Contains(page, "more suspect") || strings.Count(page, "Growing 28 blocks/s") != 4 {
		t.Error("four suspects are not four items")
	}
	v.Suspects = append(v.Suspects, one)
	page := pageWith(t, r, v)
	inOrder(t, page, `<ol class="suspects" start="1">`, `title="void std::vector&lt;int, std::allocator&lt;int&gt; &gt;::push_back(int const&amp;)">std::vector&lt;int&gt;::push_back(int const&amp;)<`,
		`<details class="others"><summary>2 more suspects, 2 MiB live now</summary>`, `<ol class="suspects" start="4">`, "Growing 28 blocks/s", "</details>", "A suspect is not a proven leak")
	if head, _, _ := strings.Cut(page, "more suspects"); strings.Count(head, "Growing 28 blocks/s") != 3 {
		t.Error("not three suspects before the others")
	}
}

// Without suspects the page prints that there are none, or why that is not known.
func TestVerdictsWithoutSuspects(t *testing.T) {
	r := newWorld(300).result()
	for _, tt := range []struct {
		observed verdict.Observation
		want     []string
	}{
		{verdict.Observation{Judged: true, Time: 90 * time.Second}, []string{"No call site grows steadily (1m30s observed)."}},
		{verdict.Observation{Judged: true, Time: 3 * time.Second}, []string{"Only 3 s observed: too short to tell whether a call site grows steadily."}},
		{verdict.Observation{Time: 90 * time.Second}, []string{"No verdict on growth: no frees were recorded."}},
		{verdict.Observation{Judged: true, Time: 90 * time.Second, Since: 70 * time.Second, Gaps: 2, Frees: 1}, []string{
			"Only 20 s of 1m30s observed since the last gap in the recording: too short", "Careful: the recording has 2 gaps; verdicts rest on blocks allocated since 01:10.",
			"Careful: a lost call may be a free; a block whose free was lost looks live.",
		}},
	} {
		page := pageWith(t, r, &Verdicts{Observed: tt.observed})
		inOrder(t, page, append([]string{"Suspects</h2>"}, tt.want...)...)
		if n := strings.Count(page, "Careful"); n != len(tt.want)-1 {
			t.Errorf("%+v: %d doubts", tt.observed, n)
		}
	}
}
