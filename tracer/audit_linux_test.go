package tracer

import (
	"fmt"
	"strings"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/trace"
)

// Of what is read after records were dropped, that counts as lost which the records
// that came do not explain.
func TestAudit(t *testing.T) {
	library := mapping{start: 0x2000, end: 0x4000, offset: 0x1000, inode: 1, path: "/library"}
	part := mapping{start: 0x3000, end: 0x4000, offset: 0x2000, inode: 1, path: "/library"}
	other := mapping{start: 0x6000, end: 0x7000, inode: 2, path: "/other"}
	code := mapping{start: 0x8000, end: 0x9000}
	threads := func(names ...string) (all []proc.Thread) {
		for i, name := range names {
			all = append(all, proc.Thread{TID: 7 + i, Name: name})
		}
		return all
	}
	for name, test := range map[string]struct {
		before  []side
		maps    []mapping
		threads []proc.Thread
		lost    uint64
		says    string
	}{
		"nothing differs":             {nil, []mapping{library}, threads("main"), 0, ""},
		"a mapping is gone":           {nil, []mapping{code}, threads("main"), 1, "code in no file at 0x8000"},
		"part of a mapping is left":   {nil, []mapping{part}, threads("main"), 0, ""},
		"a mapping":                   {nil, []mapping{library, other}, threads("main"), 1, "/other at 0x6000"},
		"a mapping that has a record": {[]side{{kind: sideMap, time: 60, mapping: other}}, []mapping{library, other}, threads("main"), 0, ""},
		"a mapping that was replaced while it was read": {
			[]side{{kind: sideMap, time: 105, mapping: mapping{start: 0x6000, end: 0x8000, inode: 3, path: "/third"}}},
			[]mapping{library, other},
			threads("main"), 0, "",
		},
		"the kernel's own":            {nil, []mapping{library, {start: 0x9000, end: 0xa000, path: trampolines}}, threads("main"), 0, ""},
		"a name":                      {nil, []mapping{library}, threads("other"), 1, "thread 7 (other)"},
		"a name that has a record":    {[]side{{kind: sideName, tid: 7, time: 60, name: "other"}}, []mapping{library}, threads("other"), 0, ""},
		"a name that was read before": {[]side{{kind: sideName, tid: 7, time: 105, name: "other"}}, []mapping{library}, threads("main"), 0, ""},
		"a thread":                    {nil, []mapping{library}, threads("main", "worker"), 1, "thread 8 (worker)"},
		"a thread that has a record":  {[]side{{kind: sideThread, tid: 8, parent: 7, time: 60}}, []mapping{library}, threads("main", "main"), 0, ""},
		"a thread that ended since":   {[]side{{kind: sideThread, tid: 8, parent: 7, time: 60}, {kind: sideExit, pid: 7, tid: 8, time: 105}}, []mapping{library}, threads("main", "main"), 0, ""},
		"another program since":       {[]side{{kind: sideExec, pid: 7, tid: 7, time: 105, name: "new"}}, []mapping{library, other}, threads("main"), 0, ""},
		"the process has ended":       {nil, nil, nil, 1, "the process has ended"},
		"a mapping, a name, a thread": {nil, []mapping{library, other}, threads("other", "worker"), 3, "/other at 0x6000, thread 7 (other), thread 8 (worker)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fedStream()
			var said strings.Builder
			s.warn = func(format string, args ...any) { fmt.Fprintf(&said, format, args...) }
			s.ended = func(uint32) {}
			s.mappings = mappings{modules: map[string]bool{}, emit: s.emit}
			s.mappings.file, s.mappings.moved = func(mapping) fileInfo { return fileInfo{} }, func(mapping, fileInfo) {}
			s.mappings.add(library, 50)
			s.roster = newRoster(threads("main"), 50)
			s.baseline = 50
			for i, x := range append(test.before, side{kind: sideAudit, pid: 7, since: 40, seen: 100, time: 110, snapshot: test.maps, threads: test.threads}) {
				s.sides[uint64(i)] = x
				s.record(&event{kind: kindSide, addr: uint64(i)}, &trace.Record{})
			}
			var lost uint64
			for r := (trace.Record{}); s.pop(&r); {
				if r.Kind == trace.KindLost {
					lost += r.Lost.Count
					if r.Lost.Reason != trace.LostNames || r.Lost.Since != 40 {
						t.Errorf("%+v", r.Lost)
					}
				}
			}
			if lost != test.lost || s.stats.Lost[LossSideband] != test.lost || s.stats.LostEvents() != 0 {
				t.Errorf("%d lost in the trace, %d in the summary, want %d", lost, s.stats.Lost[LossSideband], test.lost)
			}
			if !strings.Contains(said.String(), test.says) || (test.says == "") != (said.Len() == 0) {
				t.Errorf("it warns %q, want %q", said.String(), test.says)
			}
		})
	}
}

// The first mappings and threads are known by reading them: what the kernel recorded
// before counts for nothing in its place.
func TestRecordsBeforeTheBaseline(t *testing.T) {
	library := mapping{start: 0x2000, end: 0x4000, inode: 1, path: "/library", seen: 50}
	s := fedStream()
	s.mappings = mappings{modules: map[string]bool{}, emit: s.emit}
	s.mappings.file, s.mappings.moved = func(mapping) fileInfo { return fileInfo{} }, func(mapping, fileInfo) {}
	s.mappings.add(library, 50)
	s.roster = newRoster([]proc.Thread{{TID: 7, Name: "new"}}, 50)
	s.baseline = 50
	for s.pop(&trace.Record{}) {
	}
	for i, x := range []side{
		{kind: sideExec, pid: 7, tid: 7, time: 10, name: "old"},
		{kind: sideMap, time: 20, mapping: mapping{start: 0x3000, end: 0x5000, inode: 2, path: "/before"}},
		{kind: sideName, tid: 7, time: 30, name: "old"},
	} {
		s.sides[uint64(i)] = x
		s.record(&event{kind: kindSide, addr: uint64(i)}, &trace.Record{})
	}
	for r := (trace.Record{}); s.pop(&r); {
		if r.Kind == trace.KindMapping || r.Kind == trace.KindUnmapping || r.Kind == trace.KindThread {
			t.Errorf("the trace says %+v", r)
		}
	}
	if s.stats.Unprobed || s.stats.WasUnprobed {
		t.Error("calls count as missing for an exec before the trace")
	}
	if m := s.mappings.at(0x3800); m == nil || m.path != "/library" {
		t.Errorf("mapped is %v", m)
	}
}
