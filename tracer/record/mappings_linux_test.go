package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// follow returns empty mappings, a list that gets a line for each record, and a list that
// gets each mapping passed to moved.
func follow() (ms *mappings, lines *[]string, moved *[]process.Mapping) {
	lines, moved = new([]string), new([]process.Mapping)
	ms = &mappings{
		modules: map[string]bool{},
		file:    func(m process.Mapping) process.FileInfo { return process.FileInfo{BuildID: fmt.Sprint("id", m.Inode)} },
		moved:   func(m process.Mapping, _ process.FileInfo) { *moved = append(*moved, m) },
		emit: func(r trace.Record) {
			switch r.Kind {
			case trace.KindModule:
				*lines = append(*lines, fmt.Sprintf("module %s %s @%d", r.Module.Path, r.Module.BuildID, r.Time))
			case trace.KindMapping:
				*lines = append(*lines, fmt.Sprintf("+%s %#x @%d", r.Mapping.Path, r.Mapping.Start, r.Time))
			case trace.KindUnmapping:
				*lines = append(*lines, fmt.Sprintf("-%s %#x @%d", r.Mapping.Path, r.Mapping.Start, r.Time))
			}
		},
	}
	return ms, lines, moved
}

// change is a call of a mappings method.
type change func(ms *mappings)

func add(m process.Mapping, time uint64) change { return func(ms *mappings) { ms.add(m, time) } }
func look(from, to uint64, all ...process.Mapping) change {
	return func(ms *mappings) { ms.replace(all, from, to) }
}

// The kernel's records and looks at all mappings come in any order.
func TestMappings(t *testing.T) {
	oldTwice := oldCode
	oldTwice.Path = "/renamed"
	front := process.Mapping{Start: 0x1000, End: 0x2000, Inode: 1, Path: "/old"}
	back := process.Mapping{Start: 0x2000, End: 0x3000, Offset: 0x1000, Inode: 1, Path: "/old"}
	for name, test := range map[string]struct {
		changes []change
		want    []string // without those of modules
		now     []process.Mapping
	}{
		"appears":         {[]change{add(oldCode, 10)}, []string{"+/old 0x1000 @10"}, []process.Mapping{oldCode}},
		"next to another": {[]change{add(oldCode, 10), add(nextCode, 20)}, []string{"+/old 0x1000 @10", "+/next 0x3000 @20"}, []process.Mapping{oldCode, nextCode}},
		"replaces another": {
			[]change{add(oldCode, 10), add(otherCode, 20)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @20", "+/other 0x2000 @20"},
			[]process.Mapping{otherCode},
		},
		"replaces two": {
			[]change{add(oldCode, 10), add(nextCode, 11), add(otherCode, 20)},
			[]string{"+/old 0x1000 @10", "+/next 0x3000 @11", "-/old 0x1000 @20", "-/next 0x3000 @20", "+/other 0x2000 @20"},
			[]process.Mapping{otherCode},
		},
		// Unmapped and mapped again: the kernel writes no record of the first.
		"the same place twice": {
			[]change{add(oldCode, 10), add(oldCode, 20)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @20", "+/old 0x1000 @20"},
			[]process.Mapping{oldCode},
		},
		"the record comes after the look": {
			[]change{look(10, 20, oldCode), add(oldCode, 15)}, []string{"+/old 0x1000 @20"}, []process.Mapping{oldCode},
		},
		"the record of the look's last moment": {
			[]change{look(10, 20, oldCode), add(oldCode, 20)}, []string{"+/old 0x1000 @20"}, []process.Mapping{oldCode},
		},
		"a record later than the look": {
			[]change{look(10, 20, oldCode), add(oldCode, 21)},
			[]string{"+/old 0x1000 @20", "-/old 0x1000 @21", "+/old 0x1000 @21"},
			[]process.Mapping{oldCode},
		},
		"a look finds nothing new": {
			[]change{add(oldCode, 10), look(20, 30, oldCode)}, []string{"+/old 0x1000 @10"}, []process.Mapping{oldCode},
		},
		"a file was renamed": {
			[]change{add(oldCode, 10), look(20, 30, oldTwice)}, []string{"+/old 0x1000 @10"}, []process.Mapping{oldCode},
		},
		"a look finds one gone": {
			[]change{add(oldCode, 10), add(nextCode, 11), look(20, 30, nextCode)},
			[]string{"+/old 0x1000 @10", "+/next 0x3000 @11", "-/old 0x1000 @30"},
			[]process.Mapping{nextCode},
		},
		"a look finds another at its address": {
			[]change{add(oldCode, 10), look(20, 30, otherCode)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @30", "+/other 0x2000 @30"},
			[]process.Mapping{otherCode},
		},
		"another part of the file at its address": {
			[]change{add(front, 10), look(20, 30, process.Mapping{Start: 0x1000, End: 0x2000, Offset: 0x5000, Inode: 1, Path: "/old"})},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @30", "+/old 0x1000 @30"},
			[]process.Mapping{{Start: 0x1000, End: 0x2000, Offset: 0x5000, Inode: 1}},
		},
		"a part of the file is gone": {
			[]change{add(front, 10), add(back, 11), look(20, 30, back)},
			[]string{"+/old 0x1000 @10", "+/old 0x2000 @11", "-/old 0x1000 @30"},
			[]process.Mapping{back},
		},
		"appeared after it was read": {
			[]change{add(oldCode, 10), add(nextCode, 25), look(20, 30, oldCode)},
			[]string{"+/old 0x1000 @10", "+/next 0x3000 @25"},
			[]process.Mapping{oldCode, nextCode},
		},
		"appeared at the moment the look began": {
			[]change{add(nextCode, 20), look(20, 30)}, []string{"+/next 0x3000 @20"}, []process.Mapping{nextCode},
		},
		"replaced after it was read": {
			[]change{add(oldCode, 10), add(otherCode, 25), look(20, 30, oldCode)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @25", "+/other 0x2000 @25"},
			[]process.Mapping{otherCode},
		},
		"the next look decides": {
			[]change{add(oldCode, 10), add(otherCode, 25), look(20, 30, oldCode), look(31, 40)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @25", "+/other 0x2000 @25", "-/other 0x2000 @40"},
			nil,
		},
		"split": {
			[]change{add(oldCode, 10), look(20, 30, front, back)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @30", "+/old 0x1000 @30", "+/old 0x2000 @30"},
			[]process.Mapping{front, back},
		},
		"joined": {
			[]change{add(front, 10), add(back, 11), look(20, 30, oldCode)},
			[]string{"+/old 0x1000 @10", "+/old 0x2000 @11", "-/old 0x1000 @30", "-/old 0x2000 @30", "+/old 0x1000 @30"},
			[]process.Mapping{oldCode},
		},
		"the program was replaced": {
			[]change{add(oldCode, 10), func(ms *mappings) { ms.clear(20) }}, []string{"+/old 0x1000 @10", "-/old 0x1000 @20"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ms, lines, _ := follow()
			for _, c := range test.changes {
				c(ms)
			}
			got := slices.DeleteFunc(*lines, func(s string) bool { return strings.HasPrefix(s, "module ") })
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
			if !slices.EqualFunc(ms.current, test.now, process.Mapping.Same) {
				t.Errorf("the mappings are %+v, want %+v", ms.current, test.now)
			}
		})
	}
}

// A file is described when it is first mapped, and again only if another file has the
// same path. moved is called for each of its mappings.
func TestMappingsDescribeFilesOnce(t *testing.T) {
	ms, lines, moved := follow()
	again := process.Mapping{Start: 0x9000, End: 0xa000, Inode: oldCode.Inode, Path: oldCode.Path}
	rebuilt := process.Mapping{Start: 0xb000, End: 0xc000, Inode: 77, Path: oldCode.Path}
	for i, m := range []process.Mapping{oldCode, again, rebuilt} {
		ms.add(m, uint64(i))
	}
	modules := slices.DeleteFunc(*lines, func(s string) bool { return !strings.HasPrefix(s, "module ") })
	if want := []string{"module /old id1 @0", "module /old id77 @2"}; !slices.Equal(modules, want) {
		t.Errorf("described %q, want %q", modules, want)
	}
	if !slices.EqualFunc(*moved, []process.Mapping{oldCode, again, rebuilt}, process.Mapping.Same) {
		t.Errorf("moved was called for %+v", *moved)
	}
}

// Code without a name is code, but no record contains it.
func TestMappingsWithoutName(t *testing.T) {
	ms, lines, moved := follow()
	anonymous := process.Mapping{Start: 0x1000, End: 0x2000}
	ms.add(anonymous, 10)
	ms.add(process.Mapping{Start: 0x2000, End: 0x3000, Path: "//anon"}, 11)
	ms.add(nextCode, 12)
	for addr, want := range map[uint64][2]bool{0xfff: {}, 0x1000: {true, false}, 0x1fff: {true, false}, 0x2000: {true, false}, 0x3000: {true, true}, 0x5000: {}} {
		if got := [2]bool{ms.code(addr), ms.inFile(addr)}; got != want {
			t.Errorf("%#x: code and in a file: %v, want %v", addr, got, want)
		}
	}
	ms.clear(20)
	if want := []string{"module /next id3 @12", "+/next 0x3000 @12", "-/next 0x3000 @20"}; !slices.Equal(*lines, want) {
		t.Errorf("got %q, want %q", *lines, want)
	}
	if len(*moved) != 1 {
		t.Errorf("moved was called for %+v", *moved)
	}
	ms.add(process.Mapping{Start: 0x8000, End: 0x9000, Path: process.Vdso}, 30)
	if !ms.inFile(0x8000) {
		t.Error("the kernel's library does not count as a file")
	}
}
