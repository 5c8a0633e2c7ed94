package survey

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/testutil"
)

const mib = 1 << 20

// surveyed runs the program residence and reads it while it waits. printed is what the program
// knows of itself.
func surveyed(t *testing.T, args ...string) (d *explain.Document, printed map[string]uint64) {
	t.Helper()
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-pthread"), args...)
	child.Ready()
	d = document(t, child.PID)
	child.Go()
	child.Succeed()
	return d, numbers(t, child.Output())
}

// numbers returns the lines "NAME VALUE" of a program's output.
func numbers(t *testing.T, text []byte) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = n
	}
	return all
}

// document reads a process that does not change, and checks what holds for every process.
func document(t *testing.T, pid int) *explain.Document {
	t.Helper()
	d, err := Read(t.Context(), pid, Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() || t.Failed() {
		var b bytes.Buffer
		if err := d.WriteText(&b, explain.View{Parts: true}); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", b.String())
	}
	near(t, "the sum of all rows", d.Sum, d.Resident, 0.02, 0)
	if unknown := sizes(d, explain.Other).resident + sizes(d, explain.Unread).resident; unknown > d.Resident/20 {
		t.Errorf("%d of %d bytes are unknown", unknown, d.Resident)
	}
	return d
}

// near fails the test unless got is want, give or take a part of it and a number of bytes.
func near(t *testing.T, what string, got, want uint64, part float64, bytes uint64) {
	t.Helper()
	may := uint64(float64(want)*part) + bytes
	if got+may < want || got > want+may {
		t.Errorf("%s: %d bytes, want %d ± %d", what, got, want, may)
	}
}

// sizes returns the sums of the rows of a kind.
func sizes(d *explain.Document, kind explain.Kind) (sum amount) {
	for _, r := range d.Rows {
		if r.Kind == kind {
			sum.resident += r.Resident
			sum.size += r.Size
			sum.count += r.Count
		}
	}
	return sum
}

// leads fails the test unless a verdict on a topic is the first, and quotes a figure.
func leads(t *testing.T, d *explain.Document, topic explain.Topic) {
	t.Helper()
	if len(d.Verdicts) == 0 || d.Verdicts[0].Topic != topic {
		t.Errorf("the verdicts are %+v, want one on %s first", d.Verdicts, topic)
	}
}

// own is what the C library allocates for itself, such as tables of thread-local storage: up to
// this many bytes per thread.
const own = 2048

// The amounts of malloc equal what the program and its C library know of them.
func equalHeap(t *testing.T, d *explain.Document, printed map[string]uint64, threads uint64) {
	t.Helper()
	h := d.Heap
	if h == nil || len(h.Arenas) == 0 {
		t.Fatalf("no arenas: %+v", h)
	}
	if sizes(d, explain.Unread).size > 0 {
		t.Errorf("memory of arenas is unread: %+v", h.Arenas)
	}
	live, free, fast := sizes(d, explain.Live).size, sizes(d, explain.Free).size, sizes(d, explain.Fast).size
	cached, top := sizes(d, explain.Cached).size, sizes(d, explain.Top).size
	near(t, "live", live, printed["live"], 0.05, own*(threads+1))
	near(t, "free, in fast bins and at the ends", free+fast+top, printed["fordblks"], 0.05, own)
	near(t, "in fast bins", fast, printed["fsmblks"], 0.05, 0)
	if h.Mapped.Bytes != printed["hblkhd"] || h.Mapped.Blocks != printed["hblks"] {
		t.Errorf("%+v in mappings, want %d bytes in %d blocks", h.Mapped, printed["hblkhd"], printed["hblks"])
	}
	if h.Counted && h.CountedMapped != h.Mapped.Bytes {
		t.Errorf("the library counts %d bytes in mappings, found are %d", h.CountedMapped, h.Mapped.Bytes)
	}
	// For the library, blocks in caches are in use.
	used := printed["uordblks"] + printed["hblkhd"]
	near(t, "live and cached", live+cached, used, 0.02, own*(threads+1))
	var system uint64
	for _, a := range h.Arenas {
		system += a.System
	}
	if system != printed["arena"] {
		t.Errorf("arenas have %d bytes, want %d", system, printed["arena"])
	}
	if h.Check != nil && h.Check.Why == "" && h.Check.Free != h.Check.WalkedFree {
		t.Errorf("free by the library's lists and by its blocks: %+v", h.Check)
	}
}

func TestHeap(t *testing.T) {
	for _, threads := range []uint64{1, 8} {
		d, printed := surveyed(t, "heap", strconv.FormatUint(threads, 10))
		equalHeap(t, d, printed, threads)
		if printed["fsmblks"] == 0 || printed["hblks"] == 0 || printed["fordblks"] == 0 {
			t.Errorf("the program has not made blocks of all kinds: %v", printed)
		}
		// What is cached is known from the difference of two accounts, in whole blocks: those with
		// mappings of their own differ by what rounding adds.
		inArenas := sizes(d, explain.Live).size - d.Heap.Mapped.Bytes
		near(t, "cached", sizes(d, explain.Cached).size, printed["uordblks"]-inArenas, 0.05, 0)
		if d.Heap.ThreadCaches != int(threads) {
			t.Errorf("%d caches of threads, want %d", d.Heap.ThreadCaches, threads)
		}
		leads(t, d, explain.AboutLive)
	}
}

func TestArenasOf64Threads(t *testing.T) {
	d, printed := surveyed(t, "arenas", "64")
	equalHeap(t, d, printed, 64)
	leads(t, d, explain.AboutArenas)
}

// An arena with more than 64 MiB has several heaps.
func TestArenasOfSeveralHeaps(t *testing.T) {
	d, printed := surveyed(t, "wide", "2")
	equalHeap(t, d, printed, 2)
	for _, a := range d.Heap.Arenas {
		if !a.Main && a.Heaps < 2 {
			t.Errorf("arena with %d bytes has %d heaps", a.System, a.Heaps)
		}
	}
}

func TestPinned(t *testing.T) {
	d, printed := surveyed(t, "pinned", "64")
	equalHeap(t, d, printed, 1)
	leads(t, d, explain.AboutPinned)
	h := d.Heap.Arenas[0].Holes[0]
	if h.Bytes < 60*mib || h.Above.Blocks != 1 || h.Next != h.Above.Bytes {
		t.Errorf("the largest hole is %+v", h)
	}
}

func TestLeak(t *testing.T) {
	d, printed := surveyed(t, "leak", "20")
	equalHeap(t, d, printed, 1)
	leads(t, d, explain.AboutLive)
}

func TestPageCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, bytes.Repeat([]byte("data"), 8*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	d, printed := surveyed(t, "file", path)
	row := sizes(d, explain.Files)
	if tmpfs := sizes(d, explain.SharedMemory); tmpfs.resident >= printed["file"] {
		row = tmpfs // temporary files are in tmpfs
		leads(t, d, explain.AboutShared)
	} else {
		leads(t, d, explain.AboutFiles)
	}
	near(t, "page cache", row.resident, printed["file"], 0.02, mib)
	if text := d.Verdicts[0].Text; !strings.Contains(text, path) {
		t.Errorf("%q does not name the file", text)
	}
}

func TestShared(t *testing.T) {
	d, _ := surveyed(t, "shared", "64")
	leads(t, d, explain.AboutShared)
	if row := sizes(d, explain.SharedMemory); row.resident != 64*mib || row.size != 64*mib {
		t.Errorf("%+v is shared, want 64 MiB", row)
	}
}

// A file in tmpfs is no page cache that the kernel takes back.
func TestTmpfs(t *testing.T) {
	f, err := os.CreateTemp("/dev/shm", "rtrace-test-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, 32*mib)); err != nil {
		t.Fatal(err)
	}
	d, printed := surveyed(t, "file", f.Name())
	leads(t, d, explain.AboutShared)
	near(t, "tmpfs", sizes(d, explain.SharedMemory).resident, printed["file"], 0.01, 0)
	if text := d.Verdicts[0].Text; !strings.Contains(text, f.Name()) {
		t.Errorf("%q does not name the file", text)
	}
}

func TestStacks(t *testing.T) {
	const threads = 2000
	d, _ := surveyed(t, "stacks", strconv.Itoa(threads))
	leads(t, d, explain.AboutStacks)
	row := sizes(d, explain.Stacks)
	if row.count != threads+1 { // and that of the program
		t.Errorf("%d stacks, want %d", row.count, threads+1)
	}
	if row.resident < threads*(64<<10) {
		t.Errorf("stacks have %d bytes, want at least 64 KiB each", row.resident)
	}
}

func TestMappings(t *testing.T) {
	d, _ := surveyed(t, "mapped", "64")
	leads(t, d, explain.AboutMappings)
	near(t, "mapped", sizes(d, explain.Anonymous).resident, 64*mib, 0.02, 0)
}

// What grew between two readings is the drift of the second.
func TestGrowth(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-pthread"), "grow", "16")
	child.Ready()
	before := document(t, child.PID)
	child.Go()
	child.Ready()
	after := document(t, child.PID)
	after.Since(before)
	first := after.Drift.Rows[0]
	if first.Kind != explain.Live || first.Count < 16*mib/256 {
		t.Errorf("the largest change is %+v, want live blocks", first)
	}
	near(t, "growth", uint64(first.Resident), 16*mib, 0.05, 0)
	near(t, "growth of RSS", uint64(after.Drift.Resident), uint64(first.Resident), 0.05, mib/4)
	child.Go()
	child.Succeed()
}

// A process that allocates and frees all the time is read as it is. Nothing fails, and the rows
// still add up.
func TestBusy(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-pthread"), "busy", "4")
	child.Ready()
	const least = 5
	var last *explain.Document
	drifted := false
	for n := 0; n < least || !drifted; n++ {
		d, err := Read(t.Context(), child.PID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !d.AddsUp() && len(d.Notes) == 0 {
			t.Errorf("the rows have %d bytes, and the process %d; no note says so", d.Sum, d.Resident)
		}
		if len(d.Verdicts) == 0 {
			t.Error("no verdict")
		}
		if last != nil {
			d.Since(last)
			drifted = drifted || len(d.Drift.Rows) > 0
		}
		last = d
	}
	child.Go()
	child.Succeed()
}
