package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// follow returns empty mappings, what they tell as a line per record, and the
// mappings whose files were told of.
func follow() (ms *mappings, told *[]string, moved *[]process.Mapping) {
	told, moved = new([]string), new([]process.Mapping)
	ms = &mappings{
		modules: map[string]bool{},
		file:    func(m process.Mapping) process.FileInfo { return process.FileInfo{BuildID: fmt.Sprint("id", m.Inode)} },
		moved:   func(m process.Mapping, _ process.FileInfo) { *moved = append(*moved, m) },
		emit: func(r trace.Record) {
			switch r.Kind {
			case trace.KindModule:
				*told = append(*told, fmt.Sprintf("module %s %s @%d", r.Module.Path, r.Module.BuildID, r.Time))
			case trace.KindMapping:
				*told = append(*told, fmt.Sprintf("+%s %#x @%d", r.Mapping.Path, r.Mapping.Start, r.Time))
			case trace.KindUnmapping:
				*told = append(*told, fmt.Sprintf("-%s %#x @%d", r.Mapping.Path, r.Mapping.Start, r.Time))
			}
		},
	}
	return ms, told, moved
}

// change is something that mappings are told.
type change func(ms *mappings)

func add(m process.Mapping, time uint64) change { return func(ms *mappings) { ms.add(m, time) } }
func look(from, to uint64, all ...process.Mapping) change {
	return func(ms *mappings) { ms.replace(all, from, to) }
}

// Each order of the kernel's records and of looks at all mappings.
func TestMappings(t *testing.T) {
	oldTwice := oldCode
	oldTwice.Path = "/renamed"
	front := process.Mapping{Start: 0x1000, End: 0x2000, Inode: 1, Path: "/old"}
	back := process.Mapping{Start: 0x2000, End: 0x3000, Offset: 0x1000, Inode: 1, Path: "/old"}
	for name, test := range map[string]struct {
		changes []change
		told    []string // without modules
		now     []process.Mapping
	}{
		"appears": {[]change{add(oldCode, 10)}, []string{"+/old 0x1000 @10"}, []process.Mapping{oldCode}},
		"beside":  {[]change{add(oldCode, 10), add(beside, 20)}, []string{"+/old 0x1000 @10", "+/beside 0x3000 @20"}, []process.Mapping{oldCode, beside}},
		"takes the place of another": {
			[]change{add(oldCode, 10), add(otherCode, 20)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @20", "+/other 0x2000 @20"},
			[]process.Mapping{otherCode},
		},
		"takes the place of two": {
			[]change{add(oldCode, 10), add(beside, 11), add(otherCode, 20)},
			[]string{"+/old 0x1000 @10", "+/beside 0x3000 @11", "-/old 0x1000 @20", "-/beside 0x3000 @20", "+/other 0x2000 @20"},
			[]process.Mapping{otherCode},
		},
		// Unmapped and mapped again: there is no record of the first.
		"the same place twice": {
			[]change{add(oldCode, 10), add(oldCode, 20)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @20", "+/old 0x1000 @20"},
			[]process.Mapping{oldCode},
		},
		"the record behind the look": {
			[]change{look(10, 20, oldCode), add(oldCode, 15)}, []string{"+/old 0x1000 @20"}, []process.Mapping{oldCode},
		},
		"the record of the look's last moment": {
			[]change{look(10, 20, oldCode), add(oldCode, 20)}, []string{"+/old 0x1000 @20"}, []process.Mapping{oldCode},
		},
		"a record younger than the look": {
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
			[]change{add(oldCode, 10), add(beside, 11), look(20, 30, beside)},
			[]string{"+/old 0x1000 @10", "+/beside 0x3000 @11", "-/old 0x1000 @30"},
			[]process.Mapping{beside},
		},
		"a look finds another in its place": {
			[]change{add(oldCode, 10), look(20, 30, otherCode)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @30", "+/other 0x2000 @30"},
			[]process.Mapping{otherCode},
		},
		"another part of the file in its place": {
			[]change{add(front, 10), look(20, 30, process.Mapping{Start: 0x1000, End: 0x2000, Offset: 0x5000, Inode: 1, Path: "/old"})},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @30", "+/old 0x1000 @30"},
			[]process.Mapping{{Start: 0x1000, End: 0x2000, Offset: 0x5000, Inode: 1}},
		},
		"a part of the file is gone": {
			[]change{add(front, 10), add(back, 11), look(20, 30, back)},
			[]string{"+/old 0x1000 @10", "+/old 0x2000 @11", "-/old 0x1000 @30"},
			[]process.Mapping{back},
		},
		"appeared behind the reading": {
			[]change{add(oldCode, 10), add(beside, 25), look(20, 30, oldCode)},
			[]string{"+/old 0x1000 @10", "+/beside 0x3000 @25"},
			[]process.Mapping{oldCode, beside},
		},
		"appeared at the moment it began": {
			[]change{add(beside, 20), look(20, 30)}, []string{"+/beside 0x3000 @20"}, []process.Mapping{beside},
		},
		"replaced behind the reading": {
			[]change{add(oldCode, 10), add(otherCode, 25), look(20, 30, oldCode)},
			[]string{"+/old 0x1000 @10", "-/old 0x1000 @25", "+/other 0x2000 @25"},
			[]process.Mapping{otherCode},
		},
		"the next look has the last word": {
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
			ms, told, _ := follow()
			for _, c := range test.changes {
				c(ms)
			}
			got := slices.DeleteFunc(*told, func(s string) bool { return strings.HasPrefix(s, "module ") })
			if !slices.Equal(got, test.told) {
				t.Errorf("told\n%q, want\n%q", got, test.told)
			}
			if !slices.EqualFunc(ms.current, test.now, process.Mapping.Same) {
				t.Errorf("mapped are %+v, want %+v", ms.current, test.now)
			}
		})
	}
}

// A file is described when it is mapped first, and again only as another one
// under its name; its mappings are told of each time.
func TestMappingsDescribeFilesOnce(t *testing.T) {
	ms, told, moved := follow()
	again := process.Mapping{Start: 0x9000, End: 0xa000, Inode: oldCode.Inode, Path: oldCode.Path}
	rebuilt := process.Mapping{Start: 0xb000, End: 0xc000, Inode: 77, Path: oldCode.Path}
	for i, m := range []process.Mapping{oldCode, again, rebuilt} {
		ms.add(m, uint64(i))
	}
	modules := slices.DeleteFunc(*told, func(s string) bool { return !strings.HasPrefix(s, "module ") })
	if want := []string{"module /old id1 @0", "module /old id77 @2"}; !slices.Equal(modules, want) {
		t.Errorf("described %q, want %q", modules, want)
	}
	if !slices.EqualFunc(*moved, []process.Mapping{oldCode, again, rebuilt}, process.Mapping.Same) {
		t.Errorf("told of %+v", *moved)
	}
}

// Code that has no name is code, but no record tells of it.
func TestMappingsWithoutName(t *testing.T) {
	ms, told, moved := follow()
	anonymous := process.Mapping{Start: 0x1000, End: 0x2000}
	ms.add(anonymous, 10)
	ms.add(process.Mapping{Start: 0x2000, End: 0x3000, Path: "//anon"}, 11)
	ms.add(beside, 12)
	for addr, want := range map[uint64][2]bool{0xfff: {}, 0x1000: {true, false}, 0x1fff: {true, false}, 0x2000: {true, false}, 0x3000: {true, true}, 0x5000: {}} {
		if got := [2]bool{ms.code(addr), ms.inFile(addr)}; got != want {
			t.Errorf("%#x: code and in a file: %v, want %v", addr, got, want)
		}
	}
	ms.clear(20)
	if want := []string{"module /beside id3 @12", "+/beside 0x3000 @12", "-/beside 0x3000 @20"}; !slices.Equal(*told, want) {
		t.Errorf("told %q, want %q", *told, want)
	}
	if len(*moved) != 1 {
		t.Errorf("told of the files of %+v", *moved)
	}
	ms.add(process.Mapping{Start: 0x8000, End: 0x9000, Path: process.Vdso}, 30)
	if !ms.inFile(0x8000) {
		t.Error("the kernel's library does not count as a file")
	}
}
