package record

import (
	"slices"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// Mappings of the tests here and of mappings: oldCode and otherCode overlap,
// beside is next to oldCode.
var (
	oldCode   = process.Mapping{Start: 0x1000, End: 0x3000, Inode: 1, Path: "/old"}
	otherCode = process.Mapping{Start: 0x2000, End: 0x4000, Inode: 2, Path: "/other"}
	beside    = process.Mapping{Start: 0x3000, End: 0x5000, Inode: 3, Path: "/beside"}
	madeCode  = process.Mapping{Start: 0x1000, End: 0x3000} // at run time, in no file
)

// step is something that a coverage is told.
type step func(c *Coverage)

func mapped(m process.Mapping, time uint64) step { return func(c *Coverage) { c.mapped(m, time) } }
func replaced(time uint64) step                  { return func(c *Coverage) { c.replaced(time) } }

// word is what the follower says: the tables of all, which were mapped at the time seen, are in.
func word(seen uint64, all ...process.Mapping) step {
	return func(c *Coverage) { c.installed(all, seen) }
}

// cuts says whether a stack with a frame at addr is cut there.
func (c *Coverage) cuts(addr uint64) bool {
	s := trace.Stack{Frames: []uint64{addr, 1}, End: trace.StackComplete}
	c.limit(&s)
	return s.End == trace.StackFailed
}

// Each order in which mappings appear, are read and get their tables: the code
// whose table may be another's is known, and no other code is suspected.
func TestCoverage(t *testing.T) {
	for name, test := range map[string]struct {
		steps        []step
		wrong, right []uint64
	}{
		"one table": {[]step{word(10, oldCode)}, nil, []uint64{0x1000, 0x2fff, 0x5000}},
		"new code where there was none": {
			[]step{word(10, oldCode), mapped(beside, 20)}, nil, []uint64{0x2fff, 0x3000},
		},
		"other code in its place": {
			[]step{word(10, oldCode), mapped(otherCode, 20)}, []uint64{0x2000, 0x3fff}, []uint64{0x1fff, 0x4000},
		},
		"its table came": {
			[]step{word(10, oldCode), mapped(otherCode, 20), word(21, otherCode)}, nil, []uint64{0x1000, 0x2000},
		},
		"a look from before comes behind it": {
			[]step{word(10, oldCode), mapped(otherCode, 20), word(15, oldCode)}, []uint64{0x2000}, []uint64{0x1fff},
		},
		"a look at that very time": {
			[]step{word(10, oldCode), mapped(otherCode, 20), word(20, oldCode)}, []uint64{0x2000}, nil,
		},
		// Another one may have its inode number.
		"what looks like the same file": {
			[]step{word(10, oldCode), mapped(oldCode, 20)}, []uint64{0x1000}, []uint64{0x3000},
		},
		"the same place without a file": {
			[]step{word(10, madeCode), mapped(madeCode, 20)}, nil, []uint64{0x1000},
		},
		"another part of the same file": {
			[]step{word(10, oldCode), mapped(process.Mapping{Start: 0x1000, End: 0x3000, Offset: 0x1000, Inode: 1}, 20)}, []uint64{0x1000}, nil,
		},
		// The tables of old may be in use though nobody has said so yet.
		"replaced before the word came": {
			[]step{mapped(oldCode, 10), mapped(otherCode, 20)}, []uint64{0x2000}, []uint64{0x1fff},
		},
		"replaced, and the word comes": {
			[]step{mapped(oldCode, 10), mapped(otherCode, 20), word(15, oldCode)}, []uint64{0x2000}, nil,
		},
		"replaced, behind a look from before both": {
			[]step{mapped(oldCode, 10), word(5), mapped(otherCode, 20)}, []uint64{0x2000}, nil,
		},
		// The last word names what is mapped, but other is what is installed.
		"back again while the other is installed": {
			[]step{word(5, madeCode), mapped(otherCode, 10), mapped(madeCode, 20), word(15, otherCode)},
			[]uint64{0x1000, 0x2000},
			[]uint64{0x3000},
		},
		"back again after the word": {
			[]step{word(5, oldCode), mapped(otherCode, 10), word(12, otherCode), mapped(oldCode, 20), word(15, otherCode)},
			[]uint64{0x1000},
			nil,
		},
		"back again for good": {
			[]step{word(5, oldCode), mapped(otherCode, 10), mapped(oldCode, 20), word(15, otherCode), word(25, oldCode)},
			nil,
			[]uint64{0x1000, 0x2000},
		},
		"gone before the other came": {
			[]step{word(5, oldCode), word(10), mapped(otherCode, 20)}, nil, []uint64{0x2000},
		},
		"what a look saw go is pending no more": {
			[]step{mapped(oldCode, 10), word(20), mapped(otherCode, 30)}, nil, []uint64{0x2000},
		},
		"exec": {
			[]step{word(10, oldCode), replaced(20)}, []uint64{0, 0x1000, 0x9000_0000, ^uint64(0) - 1}, nil,
		},
		"exec, and a look from before": {
			[]step{word(10, oldCode), replaced(20), mapped(oldCode, 21), word(15, oldCode)}, []uint64{0x1000, 0x9000_0000}, nil,
		},
		"exec, and a look into the new program": {
			[]step{word(10, oldCode), replaced(20), mapped(otherCode, 21), word(22, otherCode)}, nil, []uint64{0x1000, 0x2000},
		},
		"exec, and a look while it is being loaded": {
			[]step{word(10, oldCode), replaced(20), word(21, oldCode), mapped(otherCode, 22)}, []uint64{0x2000}, []uint64{0x1fff, 0x9000_0000},
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

// Without tables nothing can be wrong with them.
func TestCoverageWithoutTables(t *testing.T) {
	c := Coverage{}
	for _, s := range []step{mapped(oldCode, 10), mapped(otherCode, 20), replaced(30)} {
		s(&c)
	}
	if c.Doubtful() || len(c.Pending) > 0 {
		t.Errorf("doubts about no tables: %+v", c)
	}
	if !c.Trusts(0x1000, true) {
		t.Error("a frame pointer is not trusted, which is all there is")
	}
}

// The first doubtful frame is right itself; what follows is cut, and only in
// this stack: others share the frames.
func TestCoverageLimit(t *testing.T) {
	c := Coverage{tables: true}
	for _, s := range []step{word(10, oldCode, beside), mapped(otherCode, 20)} {
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

// A step by frame pointer from code of a file is believed only if its table is
// in: else the table would have been used.
func TestCoverageTrusts(t *testing.T) {
	c := Coverage{tables: true}
	c.installed([]process.Mapping{oldCode}, 10)
	c.mapped(beside, 20)
	for _, test := range []struct {
		addr   uint64
		inFile bool
		want   bool
	}{
		{0x1000, true, true},
		{0x2fff, true, true},
		{0x3000, true, false}, // beside has no table yet
		{0x0fff, true, false},
		{0x3000, false, true}, // made at run time
	} {
		if got := c.Trusts(test.addr, test.inFile); got != test.want {
			t.Errorf("%#x, in a file: %v: got %v", test.addr, test.inFile, got)
		}
	}
}
