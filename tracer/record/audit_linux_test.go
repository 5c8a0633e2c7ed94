package record

import (
	"fmt"
	"strings"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// Of what is read after records were dropped, only that counts as lost which the received
// records do not explain.
func TestAudit(t *testing.T) {
	library := process.Mapping{Start: 0x2000, End: 0x4000, Offset: 0x1000, Inode: 1, Path: "/library"}
	part := process.Mapping{Start: 0x3000, End: 0x4000, Offset: 0x2000, Inode: 1, Path: "/library"}
	other := process.Mapping{Start: 0x6000, End: 0x7000, Inode: 2, Path: "/other"}
	code := process.Mapping{Start: 0x8000, End: 0x9000}
	threads := func(names ...string) (all []proc.Thread) {
		for i, name := range names {
			all = append(all, proc.Thread{TID: 7 + i, Name: name})
		}
		return all
	}
	for name, test := range map[string]struct {
		before  []order.Side
		maps    []process.Mapping
		threads []proc.Thread
		lost    uint64
		warns   string
	}{
		"nothing differs":             {nil, []process.Mapping{library}, threads("main"), 0, ""},
		"a mapping is gone":           {nil, []process.Mapping{code}, threads("main"), 1, "code in no file at 0x8000"},
		"part of a mapping is left":   {nil, []process.Mapping{part}, threads("main"), 0, ""},
		"a mapping":                   {nil, []process.Mapping{library, other}, threads("main"), 1, "/other at 0x6000"},
		"a mapping that has a record": {[]order.Side{{Kind: order.SideMap, Time: 60, Mapping: other}}, []process.Mapping{library, other}, threads("main"), 0, ""},
		"a mapping that was replaced while it was read": {
			[]order.Side{{Kind: order.SideMap, Time: 105, Mapping: process.Mapping{Start: 0x6000, End: 0x8000, Inode: 3, Path: "/third"}}},
			[]process.Mapping{library, other},
			threads("main"), 0, "",
		},
		"the kernel's own":            {nil, []process.Mapping{library, {Start: 0x9000, End: 0xa000, Path: process.Trampolines}}, threads("main"), 0, ""},
		"a name":                      {nil, []process.Mapping{library}, threads("other"), 1, "thread 7 (other)"},
		"a name that has a record":    {[]order.Side{{Kind: order.SideName, TID: 7, Time: 60, Name: "other"}}, []process.Mapping{library}, threads("other"), 0, ""},
		"a name that was read before": {[]order.Side{{Kind: order.SideName, TID: 7, Time: 105, Name: "other"}}, []process.Mapping{library}, threads("main"), 0, ""},
		"a thread":                    {nil, []process.Mapping{library}, threads("main", "worker"), 1, "thread 8 (worker)"},
		"a thread that has a record":  {[]order.Side{{Kind: order.SideThread, TID: 8, Parent: 7, Time: 60}}, []process.Mapping{library}, threads("main", "main"), 0, ""},
		"a thread that ended since":   {[]order.Side{{Kind: order.SideThread, TID: 8, Parent: 7, Time: 60}, {Kind: order.SideExit, PID: 7, TID: 8, Time: 105}}, []process.Mapping{library}, threads("main", "main"), 0, ""},
		"another program since":       {[]order.Side{{Kind: order.SideExec, PID: 7, TID: 7, Time: 105, Name: "new"}}, []process.Mapping{library, other}, threads("main"), 0, ""},
		"the process has ended":       {nil, nil, nil, 1, "the process has ended"},
		"a mapping, a name, a thread": {nil, []process.Mapping{library, other}, threads("other", "worker"), 3, "/other at 0x6000, thread 7 (other), thread 8 (worker)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fedStream()
			var warned strings.Builder
			s.warn = func(format string, args ...any) { fmt.Fprintf(&warned, format, args...) }
			s.mappings.current = nil
			s.mappings.add(library, 50)
			s.threads = newRoster(threads("main"), 50)
			s.program.baseline = 50
			for i, x := range append(test.before, order.Side{Kind: order.SideAudit, PID: 7, Since: 40, Seen: 100, Time: 110, Snapshot: test.maps, Threads: test.threads}) {
				s.sides.waiting[uint64(i)] = x
				s.record(&order.Event{Kind: order.KindSide, Addr: uint64(i)}, &trace.Record{})
			}
			var lost uint64
			for r := (trace.Record{}); s.out.pop(&r); {
				if r.Kind == trace.KindLost {
					lost += r.Lost.Count
					if r.Lost.Reason != trace.LostNames || r.Lost.Since != 40 {
						t.Errorf("%+v", r.Lost)
					}
				}
			}
			if lost != test.lost || s.Stats.Lost[order.LossSideband] != test.lost || s.Stats.LostEvents() != 0 {
				t.Errorf("%d lost in the trace, %d in the summary, want %d", lost, s.Stats.Lost[order.LossSideband], test.lost)
			}
			if !strings.Contains(warned.String(), test.warns) || (test.warns == "") != (warned.Len() == 0) {
				t.Errorf("the warning is %q, want %q", warned.String(), test.warns)
			}
		})
	}
}

// The first mappings and threads come from the baseline. The kernel's records from before
// do not change them.
func TestRecordsBeforeTheBaseline(t *testing.T) {
	library := process.Mapping{Start: 0x2000, End: 0x4000, Inode: 1, Path: "/library", Seen: 50}
	s := fedStream()
	s.mappings.current = nil
	s.mappings.add(library, 50)
	s.threads = newRoster([]proc.Thread{{TID: 7, Name: "new"}}, 50)
	s.program.baseline = 50
	for s.out.pop(&trace.Record{}) {
	}
	for i, x := range []order.Side{
		{Kind: order.SideExec, PID: 7, TID: 7, Time: 10, Name: "old"},
		{Kind: order.SideMap, Time: 20, Mapping: process.Mapping{Start: 0x3000, End: 0x5000, Inode: 2, Path: "/before"}},
		{Kind: order.SideName, TID: 7, Time: 30, Name: "old"},
	} {
		s.sides.waiting[uint64(i)] = x
		s.record(&order.Event{Kind: order.KindSide, Addr: uint64(i)}, &trace.Record{})
	}
	for r := (trace.Record{}); s.out.pop(&r); {
		if r.Kind == trace.KindMapping || r.Kind == trace.KindUnmapping || r.Kind == trace.KindThread {
			t.Errorf("the trace has %+v", r)
		}
	}
	if s.Stats.Unprobed || s.Stats.WasUnprobed {
		t.Error("calls count as missing because of an exec before the trace")
	}
	if m := s.mappings.at(0x3800); m == nil || m.Path != "/library" {
		t.Errorf("the mapping at 0x3800 is %v", m)
	}
}
