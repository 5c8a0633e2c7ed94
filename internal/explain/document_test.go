package explain

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/heap"
	"rtrace-bpf/internal/testutil"
)

const mib = 1 << 20

// made returns a judged document with these rows, whose sum is what the kernel counts.
func made(h *heap.Heap, rows ...Row) *Document {
	d := &Document{
		Time:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Process: Process{PID: 4711, NSPID: 1, Name: "server", Exe: "/srv/server", Bits: 64, Threads: 8, Runtimes: []string{}, Allocators: []string{}},
		Rows:    rows, Heap: h, Notes: []string{},
	}
	for i := range rows {
		d.Sum += rows[i].Resident
		d.Swap += rows[i].Swap
		if rows[i].Kind == Hugetlb {
			d.Hugetlb += rows[i].Size
		}
		if rows[i].Parts == nil {
			rows[i].Parts = []Part{}
		}
	}
	d.Resident = d.Sum
	d.Judge()
	return d
}

// manyOf returns arenas besides the main one, each with free memory.
func manyOf(n int, free uint64) *heap.Heap {
	h := &heap.Heap{Arenas: []heap.Arena{{Main: true}}}
	for range n {
		h.Arenas = append(h.Arenas, heap.Arena{System: 2 * free, Free: heap.Amount{Resident: free, Bytes: free, Blocks: 1}})
	}
	return h
}

// The first verdict is about the largest cause, and both sentences quote its figure.
func TestVerdicts(t *testing.T) {
	code := Row{Kind: Libraries, What: "libraries", Resident: 10 * mib}
	hole := heap.Hole{Bytes: 90 * mib, Resident: 90 * mib, Next: 5000, Above: heap.Amount{Blocks: 1, Bytes: 5000}}
	for _, test := range []struct {
		name   string
		d      *Document
		topics []Topic
		text   string
		advice string
	}{
		{"live", made(nil, Row{Kind: Live, Resident: 90 * mib, Size: 91 * mib, Count: 1000}, code), []Topic{AboutLive}, "90 % of RSS (90 MiB) is in 1,000 live blocks", "these 91 MiB"},
		{"holes", made(nil, Row{Kind: Free, Resident: 30 * mib, Count: 7}, code), []Topic{AboutHoles}, "75 % of RSS (30 MiB) is in 7 free pieces", "these 30 MiB"},
		{
			"pinned", made(&heap.Heap{Arenas: []heap.Arena{{Main: true, Holes: []heap.Hole{hole}}}}, Row{Kind: Free, Resident: 90 * mib, Count: 1}, code),
			[]Topic{AboutPinned},
			"90 % of RSS (90 MiB) is one hole below one live block of 4.88 KiB", "the 90 MiB of the hole",
		},
		{"arenas", made(manyOf(15, 4*mib), Row{Kind: Free, Resident: 60 * mib, Count: 15}, code), []Topic{AboutArenas}, "(60 MiB) is free memory of 15 arenas", "instead of 16 arenas"},
		{"few arenas", made(manyOf(3, 20*mib), Row{Kind: Free, Resident: 60 * mib, Count: 15}, code), []Topic{AboutHoles}, "(60 MiB)", "60 MiB"},
		{"caches", made(nil, Row{Kind: Cached, Resident: 10 * mib, Size: 11 * mib, Count: 9}, Row{Kind: Libraries, Resident: 15 * mib}), []Topic{AboutCaches}, "40 % of RSS (10 MiB) is in 9 freed blocks", "11 MiB"},
		{"top", made(nil, Row{Kind: Top, Resident: 10 * mib}, code), []Topic{AboutTop}, "50 % of RSS (10 MiB)", "10 MiB"},
		{"files", made(nil, Row{Kind: Files, Resident: 30 * mib, Parts: []Part{{"/data", 20 * mib}}}, code), []Topic{AboutFiles}, "page cache of mapped files (largest: /data, 20 MiB)", "30 MiB"},
		{"shared", made(nil, Row{Kind: SharedMemory, Resident: 30 * mib}, code), []Topic{AboutShared}, "75 % of RSS (30 MiB) is shared memory", "30 MiB"},
		{"stacks", made(nil, Row{Kind: Stacks, Resident: 30 * mib, Count: 2000}, code), []Topic{AboutStacks}, "2,000 of them for 8 threads, 15.4 KiB each", "fewer than 8"},
		{"managed", made(nil, Row{Kind: Managed, What: "Go heap", Resident: 30 * mib}, code), []Topic{AboutManaged}, "Go heap (30 MiB)", "30 MiB"},
		{"allocator", made(nil, Row{Kind: Allocator, What: "jemalloc", Resident: 30 * mib, Size: 50 * mib}, code), []Topic{AboutAllocator}, "jemalloc, live and free blocks together, of 50 MiB", "30 MiB"},
		{"mappings", made(nil, Row{Kind: Anonymous, Resident: 30 * mib, Count: 3}, code), []Topic{AboutMappings}, "75 % of RSS (30 MiB) is in 3 anonymous mappings", "-e mmap"},
		{"swap", made(nil, Row{Kind: Live, Resident: 30 * mib, Swap: 20 * mib}, code), []Topic{AboutLive, AboutSwap}, "(30 MiB)", "grow"},
		{
			"more swap than RSS",
			made(nil, Row{Kind: Live, Resident: 30 * mib}, Row{Kind: Other, What: "memory of malloc", Swap: 80 * mib}, Row{Kind: Files, Swap: 10 * mib}),
			[]Topic{AboutSwap, AboutLive},
			"90 MiB is swapped out and not part of RSS, which is 75 % of both together; the largest part is memory of malloc (80 MiB)", "add these 90 MiB",
		},
		{
			"hugetlb", made(nil, Row{Kind: Hugetlb, Size: 30 * mib}, code),
			[]Topic{AboutHugetlb},
			"30 MiB is in pages of hugetlbfs and not part of RSS, which is 75 % of both together", "these 30 MiB",
		},
		{"unread", made(nil, Row{Kind: Unread, Resident: 10 * mib, Why: "the time was over"}, Row{Kind: Program, Resident: 30 * mib}), []Topic{AboutUnknown}, "25 % of RSS (10 MiB) could not be explained: the time was over", "10 MiB"},
		{"code", made(nil, code), []Topic{AboutCode}, "no single cause", "10 MiB"},
		{"two", made(nil, Row{Kind: Live, Resident: 30 * mib}, Row{Kind: Files, Resident: 40 * mib}, code), []Topic{AboutFiles, AboutLive}, "(40 MiB)", "40 MiB"},
		{"a little waste", made(nil, Row{Kind: Free, Resident: mib / 2}, Row{Kind: Program, Resident: mib}), []Topic{AboutCode}, "no single cause", "1.5 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var topics []Topic
			for _, v := range test.d.Verdicts {
				topics = append(topics, v.Topic)
			}
			if len(topics) != len(test.topics) {
				t.Fatalf("topics %v, want %v", topics, test.topics)
			}
			for i := range topics {
				if topics[i] != test.topics[i] {
					t.Fatalf("topics %v, want %v", topics, test.topics)
				}
			}
			if v := test.d.Verdicts[0]; !strings.Contains(v.Text, test.text) || !strings.Contains(v.Advice, test.advice) {
				t.Errorf("%q\n%q\nlacks %q or %q", v.Text, v.Advice, test.text, test.advice)
			}
		})
	}
}

// full returns a document that uses everything that is printed.
func full() *Document {
	h := manyOf(11, 4*mib)
	h.Arenas[0] = heap.Arena{Main: true, Heaps: 1, System: 200 * mib, Live: heap.Amount{Blocks: 5, Bytes: 100 * mib, Resident: 99 * mib}, Why: "x", Holes: []heap.Hole{
		{Address: 0x1000, Bytes: 90 * mib, Resident: 80 * mib, Next: 48, Above: heap.Amount{Blocks: 2, Bytes: 96, Resident: 96}}, {Address: 0x9000, Bytes: 100},
	}}
	h.Mapped, h.ThreadCaches = heap.Amount{Blocks: 3, Bytes: 6 * mib, Resident: 5 * mib}, 7
	h.Check = &heap.Check{System: 288 * mib, Free: 130 * mib, WalkedSystem: 288 * mib, WalkedFree: 131 * mib}
	d := made(h, Row{Kind: Live, What: "malloc: live blocks", Resident: 104 * mib, Size: 106 * mib, Count: 8, Swap: mib, Huge: 2 * mib},
		Row{Kind: Free, What: "malloc: free blocks between live ones", Resident: 124 * mib, Size: 134 * mib, Count: 12},
		Row{Kind: Files, What: "page cache of mapped files", Resident: mib, Size: 2 * mib, Count: 1, Parts: []Part{{"/data/\x1b[31m\u202efile", mib}}, More: 4},
		Row{Kind: Managed, What: "Go heap", Resident: 3, Likely: true, Why: "because"})
	before := *d
	before.Rows = []Row{d.Rows[0], {Kind: Stacks, What: "stacks", Resident: 4096, Count: 1}, d.Rows[2]}
	before.Resident = d.Resident - 4*mib
	before.Time = before.Time.Add(-time.Second)
	d.Process.Name = "a\nname\x1b"
	d.Since(&before)
	d.Notes = append(d.Notes, "a note")
	d.Hugetlb = 4 * mib
	d.Proportional = d.Resident / 2
	return d
}

func TestText(t *testing.T) {
	for _, view := range []struct {
		file string
		View
	}{{"brief.txt", View{Rows: 3, Width: 80}}, {"all.txt", View{Parts: true}}} {
		var b bytes.Buffer
		if err := full().WriteText(&b, view.View); err != nil {
			t.Fatal(err)
		}
		testutil.Golden(t, view.file, b.Bytes())
		if strings.ContainsAny(b.String(), "\x1b\u202e") {
			t.Error("control characters reach the terminal")
		}
		for line := range strings.Lines(b.String()) {
			if view.Width > 0 && len(strings.TrimSuffix(line, "\n")) > view.Width {
				t.Errorf("%q is wider than %d", line, view.Width)
			}
		}
	}
}

// The keys of JSON are a promise, and lists are never null.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := full().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "\n") != 1 {
		t.Error("a document is not one line")
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Error("control characters reach the terminal")
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, b.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	testutil.Golden(t, "document.json", indented.Bytes())
}

// No character of a name reaches a terminal if it can affect it, and a reader of JSON gets the
// name as it is.
func TestHostileNames(t *testing.T) {
	const name = "a\x1b[31m\r\n\t\x7f\u009b\u061c\u200e\u2028\u202e\u2066\ufeff\U000e0001b"
	part := []Part{{name, mib}}
	d := made(nil, Row{Kind: Files, What: "files", Resident: 8 * mib, Parts: part}, Row{Kind: Program, What: name, Resident: mib, Why: name})
	before := *d
	before.Rows = nil
	d.Process.Name, d.Process.Exe, d.Notes = name, name, []string{name}
	d.Heap = &heap.Heap{Why: name}
	d.Since(&before)
	for _, view := range []View{{}, {Parts: true}, {Rows: 1, Width: 40}} {
		var b bytes.Buffer
		if err := d.WriteText(&b, view); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if r != '\n' && !strconv.IsPrint(r) {
				t.Errorf("%+v: %U reaches the terminal: %q", view, r, b.String())
			}
		}
	}
	var b bytes.Buffer
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if !strconv.IsPrint(r) {
			t.Errorf("%U reaches the terminal: %q", r, b.String())
		}
	}
	var got Document
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.Process.Name != name || got.Rows[0].Parts[0].Name != name {
		t.Errorf("%v: %q and %+v, want %q", err, got.Process.Name, got.Rows[0].Parts, name)
	}
}

func TestNothingChanged(t *testing.T) {
	d := made(nil, Row{Kind: Live, What: "live", Resident: mib})
	d.Since(made(nil, Row{Kind: Live, What: "live", Resident: mib}))
	if len(d.Drift.Rows) != 0 || d.Drift.Resident != 0 {
		t.Errorf("%+v", d.Drift)
	}
	var b bytes.Buffer
	if err := d.WriteText(&b, View{}); err != nil || !strings.Contains(b.String(), "nothing changed") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
