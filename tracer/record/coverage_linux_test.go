package record

import (
	"slices"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// Mappings of the tests here and of mappings. oldCode and otherCode overlap; nextCode
// follows oldCode.
var (
	oldCode   = process.Mapping{Start: 0x1000, End: 0x3000, Inode: 1, Path: "/old"}
	otherCode = process.Mapping{Start: 0x2000, End: 0x4000, Inode: 2, Path: "/other"}
	nextCode  = process.Mapping{Start: 0x3000, End: 0x5000, Inode: 3, Path: "/next"}
	madeCode  = process.Mapping{Start: 0x1000, End: 0x3000} // made at run time, in no file
)

// step is a call of a Coverage method.
type step func(c *Coverage)

func mapped(m process.Mapping, time uint64) step { return func(c *Coverage) { c.mapped(m, time) } }
func replaced(time uint64) step                  { return func(c *Coverage) { c.replaced(time) } }

// tablesOf is the follower's report that the tables of all are in use; the mappings were
// read when the record number seen was the next.
func tablesOf(seen uint64, all ...process.Mapping) step {
	return func(c *Coverage) { c.installed(all, seen) }
}

// cuts reports whether a stack with a frame at addr is cut there.
func (c *Coverage) cuts(addr uint64) bool {
	s := trace.Stack{Frames: []uint64{addr, 1}, End: trace.StackComplete}
	c.limit(&s)
	return s.End == trace.StackFailed
}

// Mappings appear, are read and get their tables in any order. Code whose table may
// belong to another file is doubtful, and no other code is.
func TestCoverage(t *testing.T) {
	for name, test := range map[string]struct {
		steps        []step
		wrong, right []uint64
	}{
		"one table": {[]step{tablesOf(10, oldCode)}, nil, []uint64{0x1000, 0x2fff, 0x5000}},
		"new code where there was none": {
			[]step{tablesOf(10, oldCode), mapped(nextCode, 20)}, nil, []uint64{0x2fff, 0x3000},
		},
		"other code in its place": {
			[]step{tablesOf(10, oldCode), mapped(otherCode, 20)}, []uint64{0x2000, 0x3fff}, []uint64{0x1fff, 0x4000},
		},
		"its table came": {
			[]step{tablesOf(10, oldCode), mapped(otherCode, 20), tablesOf(21, otherCode)}, nil, []uint64{0x1000, 0x2000},
		},
		"tables from before arrive later": {
			[]step{tablesOf(10, oldCode), mapped(otherCode, 20), tablesOf(15, oldCode)}, []uint64{0x2000}, []uint64{0x1fff},
		},
		"tables of that very time": {
			[]step{tablesOf(10, oldCode), mapped(otherCode, 20), tablesOf(20, oldCode)}, []uint64{0x2000}, nil,
		},
		// Another file may have its inode number.
		"what looks like the same file": {
			[]step{tablesOf(10, oldCode), mapped(oldCode, 20)}, []uint64{0x1000}, []uint64{0x3000},
		},
		"the same place without a file": {
			[]step{tablesOf(10, madeCode), mapped(madeCode, 20)}, nil, []uint64{0x1000},
		},
		"another part of the same file": {
			[]step{tablesOf(10, oldCode), mapped(process.Mapping{Start: 0x1000, End: 0x3000, Offset: 0x1000, Inode: 1}, 20)}, []uint64{0x1000}, nil,
		},
		// The tables of old may be in use although the follower has not reported them
		// yet.
		"replaced before the report": {
			[]step{mapped(oldCode, 10), mapped(otherCode, 20)}, []uint64{0x2000}, []uint64{0x1fff},
		},
		"replaced, then reported": {
			[]step{mapped(oldCode, 10), mapped(otherCode, 20), tablesOf(15, oldCode)}, []uint64{0x2000}, nil,
		},
		"replaced, after a report from before both": {
			[]step{mapped(oldCode, 10), tablesOf(5), mapped(otherCode, 20)}, []uint64{0x2000}, nil,
		},
		// The last report lists what is mapped, but the tables of other are installed.
		"back again while the other is installed": {
			[]step{tablesOf(5, madeCode), mapped(otherCode, 10), mapped(madeCode, 20), tablesOf(15, otherCode)},
			[]uint64{0x1000, 0x2000},
			[]uint64{0x3000},
		},
		"back again after the report": {
			[]step{tablesOf(5, oldCode), mapped(otherCode, 10), tablesOf(12, otherCode), mapped(oldCode, 20), tablesOf(15, otherCode)},
			[]uint64{0x1000},
			nil,
		},
		"back again for good": {
			[]step{tablesOf(5, oldCode), mapped(otherCode, 10), mapped(oldCode, 20), tablesOf(15, otherCode), tablesOf(25, oldCode)},
			nil,
			[]uint64{0x1000, 0x2000},
		},
		"gone before the other appeared": {
			[]step{tablesOf(5, oldCode), tablesOf(10), mapped(otherCode, 20)}, nil, []uint64{0x2000},
		},
		"what a look found gone is no longer pending": {
			[]step{mapped(oldCode, 10), tablesOf(20), mapped(otherCode, 30)}, nil, []uint64{0x2000},
		},
		"exec": {
			[]step{tablesOf(10, oldCode), replaced(20)}, []uint64{0, 0x1000, 0x9000_0000, ^uint64(0) - 1}, nil,
		},
		"exec, and tables from before": {
			[]step{tablesOf(10, oldCode), replaced(20), mapped(oldCode, 21), tablesOf(15, oldCode)}, []uint64{0x1000, 0x9000_0000}, nil,
		},
		"exec, and tables of the new program": {
			[]step{tablesOf(10, oldCode), replaced(20), mapped(otherCode, 21), tablesOf(22, otherCode)}, nil, []uint64{0x1000, 0x2000},
		},
		"exec, and tables from while it is being loaded": {
			[]step{tablesOf(10, oldCode), replaced(20), tablesOf(21, oldCode), mapped(otherCode, 22)}, []uint64{0x2000}, []uint64{0x1fff, 0x9000_0000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Coverage{tables: true}
			for _, s := range test.steps {
				s(&c)
			}
			if c.Doubtful() != (len(test.wrong) > 0) {
				t.Errorf("doubtful: %v", c.Doubtful())
			}
			for _, addr := range test.wrong {
				if !c.cuts(addr) {
					t.Errorf("%#x is trusted", addr)
				}
			}
			for _, addr := range test.right {
				if c.cuts(addr) {
					t.Errorf("%#x is not trusted", addr)
				}
			}
		})
	}
}

// Without tables no table can be wrong.
func TestCoverageWithoutTables(t *testing.T) {
	c := Coverage{}
	for _, s := range []step{mapped(oldCode, 10), mapped(otherCode, 20), replaced(30)} {
		s(&c)
	}
	if c.Doubtful() || len(c.Pending) > 0 {
		t.Errorf("doubtful without tables: %+v", c)
	}
	if !c.Trusts(0x1000, true) {
		t.Error("a frame pointer is not trusted although there are no tables")
	}
}

// The first doubtful frame is correct itself. What follows is cut, but only in this
// stack: others share the frames.
func TestCoverageLimit(t *testing.T) {
	c := Coverage{tables: true}
	for _, s := range []step{tablesOf(10, oldCode, nextCode), mapped(otherCode, 20)} {
		s(&c)
	}
	for name, test := range map[string]struct {
		frames []uint64
		want   int
		end    trace.StackEnd
	}{
		"none":            {[]uint64{0x1000, 0x1ffe, 0x9000}, 3, trace.StackComplete},
		"first":           {[]uint64{0x2000, 0x1000, 0x1001}, 1, trace.StackFailed},
		"second of three": {[]uint64{0x1000, 0x3fff, 0x2000, 0x1000}, 2, trace.StackFailed},
		"outermost":       {[]uint64{0x1000, 0x2000}, 2, trace.StackFailed},
		"no frames":       {nil, 0, trace.StackComplete},
	} {
		shared := slices.Clone(test.frames)
		s := trace.Stack{Frames: shared, End: trace.StackComplete}
		c.limit(&s)
		if !slices.Equal(s.Frames, test.frames[:test.want]) || s.End != test.end || (s.Reason == reasonUnmapped) != (test.end == trace.StackFailed) {
			t.Errorf("%s: got %#x %s %q", name, s.Frames, s.End, s.Reason)
		}
		if !slices.Equal(shared, test.frames) {
			t.Errorf("%s: the shared frames became %#x", name, shared)
		}
	}
}

// A frame-pointer step from code of a file is trusted only if the file's table is
// installed: otherwise the programs would have used the table.
func TestCoverageTrusts(t *testing.T) {
	c := Coverage{tables: true}
	c.installed([]process.Mapping{oldCode}, 10)
	c.mapped(nextCode, 20)
	for _, test := range []struct {
		addr   uint64
		inFile bool
		want   bool
	}{
		{0x1000, true, true},
		{0x2fff, true, true},
		{0x3000, true, false}, // nextCode has no table yet
		{0x0fff, true, false},
		{0x3000, false, true}, // made at run time
	} {
		if got := c.Trusts(test.addr, test.inFile); got != test.want {
			t.Errorf("%#x, in a file: %v: got %v", test.addr, test.inFile, got)
		}
	}
}
