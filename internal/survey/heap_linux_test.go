package survey

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/testutil"
)

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

// The same holds however malloc is set, in a static program, in a child that has inherited blocks,
// and for more than 1 GiB.
func TestHeapInOtherWays(t *testing.T) {
	dynamic := testutil.Build(t, "residence", "-pthread")
	static := testutil.Build(t, "residence", "-static", "-pthread")
	for _, test := range []struct {
		name, program, setting string
		args                   []string
		threads                uint64
		long                   bool
	}{
		{"one arena", dynamic, "MALLOC_ARENA_MAX=1", []string{"heap", "8"}, 8, false},
		{"64 threads", dynamic, "", []string{"heap", "64"}, 64, false},
		{"no thread caches", dynamic, "GLIBC_TUNABLES=glibc.malloc.tcache_count=0", []string{"heap", "4"}, 4, false},
		{"smaller arenas and caches", dynamic, "GLIBC_TUNABLES=glibc.malloc.arena_max=3:glibc.malloc.tcache_max=256:glibc.malloc.mxfast=64", []string{"heap", "8"}, 8, false},
		{"huge pages", dynamic, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1", []string{"heap", "8"}, 8, false},
		{"many mapped blocks", dynamic, "MALLOC_MMAP_THRESHOLD_=4096", []string{"heap", "4"}, 4, false},
		{"static", static, "", []string{"heap", "8"}, 8, false},
		{"child", dynamic, "", []string{"fork", "16"}, 1, false},
		{"more than 1 GiB in one heap", dynamic, "", []string{"leak", "1100"}, 1, true},
		{"more than 1 GiB in arenas", dynamic, "", []string{"wide", "11"}, 11, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long {
				testutil.Extra(t, "time and memory")
			}
			info := filepath.Join(t.TempDir(), "info")
			cmd := exec.Command(test.program, append(test.args, info)...)
			cmd.Env = append(os.Environ(), test.setting)
			child := testutil.Start(t, cmd)
			child.Ready()
			pid := child.PID
			if test.args[0] == "fork" {
				pid = onlyChild(t, pid)
			}
			d := document(t, pid)
			child.Go()
			child.Succeed()
			printed := numbers(t, child.Output())
			equalHeap(t, d, printed, test.threads)
			equalArenas(t, d, info)
			// For the library, its own structures are in use.
			used := sizes(d, explain.Live).size - d.Heap.Mapped.Bytes + sizes(d, explain.Own).size
			near(t, "cached", sizes(d, explain.Cached).size, max(printed["uordblks"], used)-used, 0.05, own)
		})
	}
}

// equalArenas compares each arena with what malloc_info printed about it to a file.
func equalArenas(t *testing.T, d *explain.Document, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type amount struct {
		Type string `xml:"type,attr"`
		Size uint64 `xml:"size,attr"`
	}
	var info struct {
		Heaps []struct {
			Totals  []amount `xml:"total"` // fast and rest, which includes the end of the arena
			Systems []amount `xml:"system"`
		} `xml:"heap"`
	}
	if err := xml.Unmarshal(text, &info); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(info.Heaps) != len(d.Heap.Arenas) {
		t.Fatalf("%d arenas, malloc_info has %d", len(d.Heap.Arenas), len(info.Heaps))
	}
	of := func(all []amount, name string) uint64 {
		i := slices.IndexFunc(all, func(a amount) bool { return a.Type == name })
		if i < 0 {
			t.Fatalf("malloc_info has no %s:\n%s", name, text)
		}
		return all[i].Size
	}
	for i, h := range info.Heaps {
		a := &d.Heap.Arenas[i]
		near(t, fmt.Sprintf("free in arena %d", i), a.Free.Bytes+a.Top.Bytes, of(h.Totals, "rest"), 0.01, 0)
		near(t, fmt.Sprintf("in fast bins of arena %d", i), a.Fast.Bytes, of(h.Totals, "fast"), 0, 0)
		near(t, fmt.Sprintf("size of arena %d", i), a.System, of(h.Systems, "current"), 0, 0)
	}
}

// onlyChild returns the child of a process.
func onlyChild(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}
