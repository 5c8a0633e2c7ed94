package record

import (
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// Operators are found where their file is mapped now: also in libraries that come late, and not
// where a library was.
func TestOperatorsWhereTheyAre(t *testing.T) {
	const size = 0x1000
	codes := map[uint64][]plan.OperatorCode{ // by inode
		1: {{Name: "new", Start: 0x100, End: 0x140}, {Name: "new aligned", Start: 0x180, End: 0x1c0}},
		2: {{Name: "own new", Start: 0x120, End: 0x130}},
		3: nil,
	}
	reads := 0
	ms := &mappings{
		modules: map[string]bool{}, emit: func(trace.Record) {},
		file: func(m process.Mapping) process.FileInfo { return process.FileInfo{Known: true, Bias: m.Start} },
	}
	ops := &operators{
		files: map[process.FileID][]plan.OperatorCode{{Inode: 1}: codes[1]}, mappings: ms,
		read: func(m process.Mapping) []plan.OperatorCode { reads++; return codes[m.Inode] },
	}
	ms.moved = ops.moved
	at := func(start, inode uint64) process.Mapping {
		return process.Mapping{Start: start, End: start + size, Inode: inode, Path: "/file"}
	}
	expect := func(when string, want map[uint64]string) {
		t.Helper()
		for caller, name := range want {
			if got := ops.calling(caller); got != name {
				t.Errorf("%s: %#x is in %q, want %q", when, caller, got, name)
			}
		}
	}

	ms.add(at(0x10000, 1), 1)
	ms.add(at(0x20000, 3), 1)
	expect("mapped", map[uint64]string{
		0x100ff: "", 0x10100: "new", 0x1013f: "new", 0x10140: "", 0x10180: "new aligned", 0x101c0: "", 0x20120: "", 0: "",
	})
	ms.add(at(0x30000, 2), 2)
	ms.add(at(0x40000, 2), 2)
	expect("another file came", map[uint64]string{0x30120: "own new", 0x40120: "own new", 0x30130: "", 0x10100: "new"})
	if reads != 2 {
		t.Errorf("%d files were read, want each of the two that are not in the plan once", reads)
	}
	ms.add(at(0x10000, 2), 3)
	expect("replaced", map[uint64]string{0x10100: "", 0x10120: "own new", 0x10180: ""})
	ms.clear(4)
	expect("another program", map[uint64]string{0x10120: "", 0x30120: ""})
	ms.add(at(0x50000, 1), 5)
	ms.add(process.Mapping{Start: 0x30000, End: 0x31000}, 5) // code without a file
	expect("mapped again", map[uint64]string{0x50100: "new", 0x10100: "", 0x30120: ""})
	ms.add(process.Mapping{Start: 0x60000, End: 0x60110, Inode: 1, Path: "/file"}, 6)
	expect("mapped in part", map[uint64]string{0x60100: ""})
}
