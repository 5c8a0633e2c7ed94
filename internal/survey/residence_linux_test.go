package survey

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
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

// Transparent huge pages are part of their row, and marked.
func TestHugePages(t *testing.T) {
	setting, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || strings.Contains(string(setting), "[never]") {
		t.Skipf("SKIPPED-KERNEL: it has no transparent huge pages: %s %v", setting, err)
	}
	d, _ := surveyed(t, "huge", "16")
	leads(t, d, explain.AboutMappings)
	near(t, "mapped", sizes(d, explain.Anonymous).resident, 16*mib, 0.02, 0)
	i := slices.IndexFunc(d.Rows, func(r explain.Row) bool { return r.Kind == explain.Anonymous })
	// A machine whose memory is fragmented may have no huge pages left.
	if n := d.Rows[i].Huge; n > 16*mib || n%(2*mib) != 0 {
		t.Errorf("%d bytes in huge pages of 16 MiB", n)
	} else if n > 0 && !strings.Contains(words(t, d), "of the rows in transparent huge pages") {
		t.Errorf("no line about huge pages:\n%s", words(t, d))
	}
}

// words returns a document as text.
func words(t *testing.T, d *explain.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.WriteText(&b, explain.View{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Pages of hugetlbfs are not part of RSS, neither for the kernel nor for the rows.
func TestHugetlb(t *testing.T) {
	const setting = "/proc/sys/vm/nr_hugepages"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Skipf("SKIPPED-KERNEL: it has no hugetlbfs: %v", err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(before)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(setting, []byte(strconv.Itoa(number+4)), 0o600); err != nil {
		t.Skipf("SKIPPED-PRIVILEGE: making pages of hugetlbfs needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(setting, before, 0o600); err != nil {
			t.Error(err)
		}
	})
	if now, err := os.ReadFile(setting); err != nil || strings.TrimSpace(string(now)) != strconv.Itoa(number+4) {
		t.Skipf("SKIPPED-KERNEL: its memory is too fragmented for 4 pages of hugetlbfs: %s %v", now, err)
	}
	d, _ := surveyed(t, "hugetlb", "8")
	if d.Hugetlb != 8*mib || d.Resident >= 8*mib {
		t.Errorf("%d bytes are in hugetlbfs, and %d resident", d.Hugetlb, d.Resident)
	}
	leads(t, d, explain.AboutHugetlb)
	if row := sizes(d, explain.Hugetlb); row.size != 8*mib || row.resident != 0 {
		t.Errorf("the row of hugetlbfs is %+v", row)
	}
	if !strings.Contains(words(t, d), "8 MiB in pages of hugetlbfs, not part of RSS") {
		t.Errorf("no line about hugetlbfs:\n%s", words(t, d))
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
