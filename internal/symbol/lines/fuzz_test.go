package lines

import (
	"errors"
	"testing"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/trace"
)

// checkTable looks up addresses and checks what must be true of any table.
func checkTable(t *testing.T, tab *Table) {
	t.Helper()
	i := tab.info
	if len(tab.units) > len(i.info)/7+1 || len(tab.index.ranges) > maxRanges+len(i.ranges)+len(i.rangeLists)+len(i.line) || len(tab.index.reach) != len(tab.index.ranges) {
		t.Fatalf("%d units, %d ranges from %d bytes", len(tab.units), len(tab.index.ranges), i.Size())
	}
	addrs := []uint64{0, ^uint64(0), madeAddr, madeAddr + 0x10, madeAddr + 0x1f, madeAddr + madeSize - 1, madeAddr + madeSize}
	for k, r := range tab.index.ranges {
		if r.start >= r.end {
			t.Fatalf("range %#x to %#x", r.start, r.end)
		}
		if k < 16 {
			addrs = append(addrs, r.start, r.end-1, r.end)
		}
	}
	for _, addr := range addrs {
		frames := tab.AppendFrames(nil, addr)
		if len(frames) > maxFrames {
			t.Fatalf("%d frames", len(frames))
		}
		for k, f := range frames {
			if f.Line < 0 || !f.Inlined && k < len(frames)-1 || len(f.File) > 3*maxPath+2 {
				t.Fatalf("frame %d of %d: %+v", k, len(frames), f)
			}
		}
	}
	for k := range tab.units {
		d := tab.units[k].data
		if d == nil {
			continue
		}
		if len(d.functions.nodes) > len(i.info) || d.lines.rows > len(i.line) || len(d.lines.list) > len(i.line) {
			t.Fatalf("%d functions, %d rows, %d files from %d bytes", len(d.functions.nodes), d.lines.rows, len(d.lines.list), i.Size())
		}
		for n := 1; n < len(d.functions.starts); n++ {
			if d.functions.starts[n] <= d.functions.starts[n-1] {
				t.Fatalf("addresses out of order at %d", n)
			}
		}
		for n := 1; n < len(d.lines.sequences); n++ {
			if d.lines.sequences[n].start < d.lines.sequences[n-1].end {
				t.Fatalf("sequences out of order at %d", n)
			}
		}
	}
	if err := tab.Err(); err != nil {
		if _, ok := errors.AsType[*trace.SyntaxError](err); !ok {
			t.Fatalf("error %v is no *trace.SyntaxError", err)
		}
	}
}

func FuzzTable(f *testing.F) {
	for _, m := range makers() {
		i := m.make()
		f.Add(i.info, i.abbrev, i.line, i.str, i.ranges, i.rangeLists, i.addr, i.order.Big)
	}
	f.Fuzz(func(t *testing.T, info, abbrev, line, str, ranges, lists, addr []byte, big bool) {
		i := &Info{
			order: binio.Order{Big: big, Pointer: 8}, info: info, abbrev: abbrev, line: line, str: str, lineStr: str,
			strOffsets: addr, addr: addr, ranges: ranges, rangeLists: lists,
		}
		checkTable(t, newTable(i, made, func(uint64) string { return "s" }))
		for name, members := range Structures(i, "s", "a") {
			if len(members) > maxMembers {
				t.Fatalf("%s has %d members", name, len(members))
			}
		}
	})
}
