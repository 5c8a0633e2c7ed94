package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/analysis/pagemap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// kernelPage returns the kernel's flags of a page and the number of its mappings; ok is
// false if the page has no memory.
func kernelPage(t *testing.T, pid int, addr uint64) (flags, count uint64, ok bool) {
	t.Helper()
	word := func(path string, index uint64) uint64 {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var b [8]byte
		if _, err := f.ReadAt(b[:], int64(index*8)); err != nil {
			t.Fatalf("%s, %d: %v", path, index, err)
		}
		return binary.NativeEndian.Uint64(b[:])
	}
	entry := word(fmt.Sprintf("/proc/%d/pagemap", pid), addr/uint64(os.Getpagesize()))
	if entry>>63 == 0 {
		return 0, 0, false
	}
	frame := entry & (1<<55 - 1)
	return word("/proc/kpageflags", frame), word("/proc/kpagecount", frame), true
}

// unstable are flags that the kernel changes by itself: when the page is accessed or idle,
// or moves between lists.
const unstable = 1<<0 | 1<<2 | 1<<5 | 1<<6 | 1<<25

// TestPagemap checks that the attached files contain the kernel's data about the pages of a
// waiting program.
func TestPagemap(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		tool := rtrace(t)
		build(t, "pages")
		for _, format := range []string{"sprtrace", "text"} {
			t.Run(format, func(t *testing.T) { testPagemap(t, build, tool, format) })
		}
	})
}

func testPagemap(t *testing.T, build testutil.Builder, tool, format string) {
	child := waitingOf(t, build, "pages")
	flags := []string{"--format", format, "-e", "memory:pagemap"}
	if format == "text" {
		flags = []string{"--format", format, "--pagemap"}
	}
	r := start(t, child, flags...)
	child.Go()
	child.Ready()
	r.Signal(unix.SIGINT)
	r.ends(cli.OK)
	file := func(name string) string { return filepath.Join(r.dir, fmt.Sprintf("%d-pagemap-%s-0", child.PID, name)) }
	maps := contentOf(t, file("maps"))
	if now := contentOf(t, fmt.Sprintf("/proc/%d/maps", child.PID)); maps != now {
		t.Errorf("mappings\n%s\nwant\n%s", maps, now)
	}
	areas, err := pagemap.ReadMaps(strings.NewReader(maps))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file("pageflags"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := pagemap.OpenPages(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	heap := ""
	type area struct{ start, end uint64 }
	seen := map[area][]pagemap.Page{}
	now := map[area][]pagemap.Page{}
	for i := range areas {
		a := &areas[i]
		if a.Path == "[heap]" {
			heap = fmt.Sprintf("%x-%x", a.Start, a.End)
		}
		at := area{a.Start, a.End}
		for n := range a.Pages(pages.PageSize) {
			page, ok, err := pages.Page(a, n)
			if err != nil || !ok != (a.Path == "[vsyscall]") {
				t.Fatalf("page %d of %s: %v, %v", n, a.Line, ok, err)
			}
			flags, count, present := uint64(0), uint64(0), false
			if ok {
				flags, count, present = kernelPage(t, child.PID, a.Start+n*pages.PageSize)
			}
			want := pagemap.Page{Flags: flags, Count: uint32(count)}
			if present {
				want.Info = pagemap.InMemory
			}
			seen[at], now[at] = append(seen[at], page), append(now[at], want)
		}
	}
	// rtrace pagemap can draw maps from the trace.
	trace := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, encoder.Suffix(format)))
	for _, flag := range []string{"-p", "-c", "-d"} {
		out, err := exec.Command(tool, "pagemap", flag, trace).CombinedOutput()
		if err != nil || !strings.Contains(string(out), heap) || heap == "" {
			t.Errorf("rtrace pagemap %s: %v, without %s\n%s", flag, err, heap, out)
		}
	}
	child.Go()
	child.Succeed()
	var locked area
	if _, err := fmt.Sscanf(string(child.Output()), "%x %x", &locked.start, &locked.end); err != nil {
		t.Fatal(err)
	}
	// A neighbour may be part of the same mapping.
	found := false
	for at := range seen {
		if at.start > locked.start || at.end < locked.end {
			continue
		}
		found = true
		first := (locked.start - at.start) / pages.PageSize
		for i := range (locked.end - locked.start) / pages.PageSize {
			got, want := seen[at][first+i], now[at][first+i]
			zero := i%3 != 0
			if (got.Info&pagemap.Zero != 0) != zero {
				t.Errorf("page %d: zero %v, want %v", i, !zero, zero)
			}
			got.Info &^= pagemap.Zero
			got.Flags, want.Flags = got.Flags&^unstable, want.Flags&^unstable
			if got != want || got.Info != pagemap.InMemory || got.Flags == 0 {
				t.Errorf("page %d: %+v, want %+v", i, got, want)
			}
		}
	}
	if !found {
		t.Errorf("no area has %x-%x\n%s", locked.start, locked.end, maps)
	}
}

// If the process has ended, its pages are not attached, and no files are left.
func TestPagemapOfEnded(t *testing.T) {
	child := waiting(t, "leak")
	r := start(t, child, "--pagemap")
	child.Go()
	child.Report()
	r.ends(cli.OK)
	r.says("its pages are not recorded: the process has ended")
	if left, err := filepath.Glob(filepath.Join(r.dir, "*-pagemap-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// --pagemap is refused with outputs and flags that it cannot be combined with.
func TestPagemapFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--pagemap -o -":                    "--pagemap writes files to the directory of the trace, and -o - has none",
		"-e memory:pagemap --format mtrc":   "mtrc has no place for the names of files",
		"--pagemap --attach maps=f":         "--pagemap attaches maps itself",
		"-e pagemap --attach pageflags=f":   "--pagemap attaches pageflags itself",
		"--pagemap --dotnet --format jsonl": "--pagemap does not go with --dotnet alone",
	} {
		var c config
		if err := c.parse(strings.Fields("-p 1 "+args), settings{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	var c config
	if err := c.parse(strings.Fields("-p 1 -e pagemap"), settings{}); err != nil {
		t.Error(err)
	}
	if o, err := c.options(); err != nil || o.NoMemory || !c.pagemapped() {
		t.Errorf("-e pagemap alone: no memory %v, %v", o.NoMemory, err)
	}
}
