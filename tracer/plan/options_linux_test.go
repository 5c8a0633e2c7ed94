package plan

import "testing"

// VerifyUnwind is valid only for stacks that come from unwind tables and through ring
// buffers.
func TestOptionsCheckUnwind(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		good    bool
	}{
		"auto":                     {Options{Depth: 8}, true},
		"eh":                       {Options{Depth: 8, Unwind: UnwindEH}, true},
		"fp":                       {Options{Depth: 8, Unwind: UnwindFP}, true},
		"helper":                   {Options{Depth: 8, Unwind: UnwindHelper}, true},
		"none":                     {Options{Depth: 8, Unwind: UnwindNone}, true},
		"unknown way":              {Options{Depth: 8, Unwind: UnwindNone + 1}, false},
		"auto, checked":            {Options{Depth: 8, VerifyUnwind: 1}, true},
		"eh, checked":              {Options{Depth: 8, Unwind: UnwindEH, VerifyUnwind: 1000}, true},
		"fp, checked":              {Options{Depth: 8, Unwind: UnwindFP, VerifyUnwind: 1}, false},
		"helper, checked":          {Options{Depth: 8, Unwind: UnwindHelper, VerifyUnwind: 1}, false},
		"none, checked":            {Options{Depth: 8, Unwind: UnwindNone, VerifyUnwind: 1}, false},
		"no depth":                 {Options{Unwind: UnwindEH}, true},
		"no depth, checked":        {Options{Unwind: UnwindEH, VerifyUnwind: 1}, false},
		"negative":                 {Options{Depth: 8, VerifyUnwind: -1}, false},
		"perf buffers":             {Options{Depth: 8, Buffer: BufferPerf}, true},
		"perf buffers, checked":    {Options{Depth: 8, Buffer: BufferPerf, VerifyUnwind: 1}, false},
		"bounded, checked":         {Options{Depth: 8, Bounded: true, VerifyUnwind: 1}, true},
		"with all frees, checked":  {Options{Depth: 8, BacktraceAll: true, VerifyUnwind: 1}, true},
		"deepest, eh, checked":     {Options{Depth: MaxDepth, Unwind: UnwindEH, VerifyUnwind: 1}, true},
		"beyond, none, not needed": {Options{Depth: MaxDepth + 1, Unwind: UnwindNone}, false},
	} {
		test.options.PID = 1
		if err := test.options.Check(); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each name that --unwind takes leads to the way with that name; Tables and Frames are right
// for it.
func TestUnwinds(t *testing.T) {
	want := map[string]struct{ tables, stacks bool }{
		"auto": {true, true}, "eh": {true, true}, "fp": {false, true}, "helper": {false, true}, "none": {false, false},
	}
	ways := Unwinds()
	if len(ways) != len(want) {
		t.Errorf("%d ways, want %d", len(ways), len(want))
	}
	for name, w := range want {
		way, ok := ways[name]
		if !ok || way.String() != name {
			t.Errorf("%s is %v, %v", name, way, ok)
		}
		if o := (Options{Depth: 8, Unwind: way}); way.Tables() != w.tables || (o.Frames() == 8) != w.stacks {
			t.Errorf("%s: tables %v, depth %d", name, way.Tables(), o.Frames())
		}
	}
}
