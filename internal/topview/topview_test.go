package topview

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/trace"
)

const second = int64(time.Second)

// scene is a process that allocates, as the engine sees it.
type scene struct {
	*aggregate.Engine
	places  map[int]Place
	next    uint64
	elapsed time.Duration
	process Process
}

// newScene returns a scene without calls, with the places of four call sites.
func newScene() *scene {
	e := aggregate.New()
	e.Add(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockMonotonic}})
	return &scene{Engine: e, next: 0x1000, process: Process{PID: 4711, Name: "server", RSS: 64 << 20, Share: 0.04, Factor: 1.04}, places: map[int]Place{
		0: {Function: "cache_insert", File: "/src/cache.c", Line: 12, Library: "/bin/server", Callers: []string{"handle_request", "main"}, Stack: []string{"malloc", "cache_insert() at cache.c:12", "handle_request", "main"}},
		1: {Function: "parse<std::map<std::string, std::vector<int>>>(std::string const&)", File: "/src/parse.cc", Line: 7, Library: "/bin/server", Stack: []string{"operator new", "parse"}},
		2: {Function: "libz.so.1+0x1234", Library: "/lib/libz.so.1"},
		3: {Function: "evil\x1b[31m\u202e\nname", File: "/src/\x07.c", Line: 1, Library: "/lib/\x1b]0;x\x07"},
	}}
}

func (s *scene) Place(site int) (Place, bool) {
	p, ok := s.places[site]
	return p, ok
}

// alloc allocates blocks at a call site, in the next nanoseconds, and returns their addresses.
func (s *scene) alloc(site, tid, blocks int, size uint64) (ids []uint64) {
	for range blocks {
		s.next += 0x10
		ids = append(ids, s.next)
		s.Add(&trace.Record{Kind: trace.KindCall, Time: second + int64(s.elapsed), PID: 4711, TID: int32(tid), Call: trace.Call{
			Op: trace.OpAlloc, ID: s.next, Size: size, Stack: trace.Stack{Frames: []uint64{0x100 * uint64(site+1), 0x10}, End: trace.StackComplete},
		}})
	}
	return ids
}

func (s *scene) free(ids []uint64) {
	for _, id := range ids {
		s.Add(&trace.Record{Kind: trace.KindCall, Time: second + int64(s.elapsed), PID: 4711, TID: 1, Call: trace.Call{Op: trace.OpFree, ID: id}})
	}
}

// tick passes a second, and returns a snapshot.
func (s *scene) tick() *Snapshot {
	s.elapsed += time.Second
	s.Interval(second + int64(s.elapsed))
	return &Snapshot{State: s.State(), Elapsed: s.elapsed, Processes: []Process{s.process}}
}

// busy returns a scene after two refreshes of a model: a cache that grows, blocks that live
// shortly, one old block, and a name that acts on terminals.
func busy(o Options) (*scene, *Model) {
	s := newScene()
	m := New(s, o)
	s.alloc(0, 1, 10, 1024)
	s.free(s.alloc(1, 2, 100, 64))
	s.alloc(2, 1, 1, 1<<20)
	m.Update(s.tick(), false)
	s.alloc(0, 1, 20, 1024)
	s.free(s.alloc(1, 2, 300, 64))
	s.alloc(3, 3, 2, 100)
	m.Update(s.tick(), false)
	return s, m
}

func texts(m *Model) (all []string) {
	for i := range m.Rows() {
		all = append(all, m.Rows()[i].Text)
	}
	return all
}

func TestTable(t *testing.T) {
	_, m := busy(Options{By: BySite, Order: OrderLive})
	var b strings.Builder
	if err := m.WriteTable(&b, 3, 150); err != nil {
		t.Fatal(err)
	}
	want := `process 4711 (server), traced for 00:00:02
RSS 64.0 MiB  live 1.0 MiB in 33 blocks  allocates 38.9 KiB/s in 322 calls/s
tracing costs 4.0 % of its CPU time (1.04 times slower)  lost 0  paused 0

   *live  blocks   growth/s   alloc/s  calls/s  call site
 1.0 MiB       1        0 B       0 B        0  libz.so.1+0x1234
30.0 KiB      30  +20.0 KiB  20.0 KiB       20  cache_insert (cache.c:12) < handle_request < main
   200 B       2     +200 B     200 B        2  evil\x1b[31m\u202e\x0aname (\x07.c:1)
     0 B       0        0 B  18.8 KiB      300  in 1 other row
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The figures of JSON are those of the engine.
func TestJSON(t *testing.T) {
	s, m := busy(Options{By: BySite, Order: OrderRate})
	var b strings.Builder
	if err := m.WriteJSON(&b, 2); err != nil {
		t.Fatal(err)
	}
	var got object
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v\n%s", err, b.String())
	}
	state := s.State()
	total := state.Resources[0].Total
	if r := got.Resources[0]; len(got.Resources) != 1 || r.Live != amountJSON(total.Live) || r.Allocated != amountJSON(total.Allocated) || r.Allocations != 433 || r.Frees != 400 {
		t.Errorf("%+v", got.Resources)
	}
	first, second := got.Rows[0], got.Rows[1]
	if len(got.Rows) != 2 || got.OtherRows != 2 || first.Function != "cache_insert" || first.Live != (amountJSON{30, 30 << 10}) || first.Growth != 20<<10 ||
		second.Calls != 300 || second.Freed != (amountJSON{400, 25600}) || got.Others.Live != (amountJSON{3, 1<<20 + 200}) || got.Final || got.Seconds != 2 {
		t.Errorf("%+v", got)
	}
	if len(first.Stack) != 4 || first.Line != 12 || first.Library != "/bin/server" {
		t.Errorf("%+v", first)
	}
}

func TestGroups(t *testing.T) {
	for by, want := range map[By][]string{
		BySite:     {"libz.so.1+0x1234", "cache_insert (cache.c:12)", `evil\x1b[31m\u202e\x0aname (\x07.c:1)`, "parse<std::map<std::string, std::vector<int>>>(std::string const&) (parse.cc:7)"},
		ByFunction: {"libz.so.1+0x1234", "cache_insert", `evil\x1b[31m\u202e\x0aname`, "parse<std::map<std::string, std::vector<int>>>(std::string const&)"},
		ByFile:     {"(unknown)", "/src/cache.c", `/src/\x07.c`, "/src/parse.cc"},
		ByLibrary:  {"/lib/libz.so.1", "/bin/server", `/lib/\x1b]0;x\x07`},
		ByThread:   {"thread 1", "thread 3", "thread 2"},
		BySize:     {"1 MiB to below 2 MiB", "1 KiB to below 2 KiB", "64 B to below 128 B"},
	} {
		_, m := busy(Options{By: by, Order: OrderLive})
		if d := cmp.Diff(want, texts(m)); d != "" {
			t.Errorf("%s (-want +got)\n%s", by, d)
		}
		var live, blocks uint64
		var calls float64
		for i := range m.Rows() {
			live += m.Rows()[i].Live.Bytes
			blocks += m.Rows()[i].Live.Blocks
			calls += m.Rows()[i].Calls
		}
		if live != 1<<20+30<<10+200 || blocks != 33 {
			t.Errorf("%s: %d bytes in %d blocks", by, live, blocks)
		}
		if calls != 322 {
			t.Errorf("%s: %v calls/s", by, calls)
		}
	}
}

func TestOrders(t *testing.T) {
	for order, want := range map[Order]string{OrderLive: "libz.so.1+0x1234", OrderGrowth: "cache_insert (cache.c:12)", OrderRate: "cache_insert (cache.c:12)", OrderCount: "cache_insert (cache.c:12)"} {
		_, m := busy(Options{By: BySite, Order: order})
		if got := texts(m)[0]; got != want {
			t.Errorf("%s: %s", order, got)
		}
	}
}

// The filter looks at functions, files, libraries and stacks. Rows that are not named yet
// stay.
func TestFilter(t *testing.T) {
	for filter, want := range map[string][]string{
		"CACHE": {"cache_insert (cache.c:12)"}, "libz": {"libz.so.1+0x1234"}, "handle_": {"cache_insert (cache.c:12)"}, "no such": nil,
	} {
		_, m := busy(Options{By: BySite, Order: OrderLive, Filter: filter})
		if d := cmp.Diff(want, texts(m)); d != "" {
			t.Errorf("%s (-want +got)\n%s", filter, d)
		}
	}
	s, _ := busy(Options{By: BySite, Order: OrderLive})
	place := s.places[2]
	delete(s.places, 2)
	m := New(s, Options{By: BySite, Order: OrderLive, Filter: "libz"})
	m.Update(s.tick(), false)
	if d := cmp.Diff([]string{"(reading symbols)"}, texts(m)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{2}, m.Missing(1)); d != "" {
		t.Error(d)
	}
	s.places[2] = place
	m.Refresh()
	if got := m.Missing(1); got != nil || len(m.Rows()) != 1 {
		t.Errorf("%v is missing, %q", got, texts(m))
	}
}

// Everything that makes figures uncertain is in the first lines.
func TestDoubts(t *testing.T) {
	s := newScene()
	m := New(s, Options{By: BySite, Order: OrderLive})
	s.alloc(0, 1, 3, 1000)
	s.Add(&trace.Record{Kind: trace.KindLost, PID: 4711, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused}})
	s.Add(&trace.Record{Kind: trace.KindLost, PID: 4711, Lost: trace.Lost{Count: 7, Reason: "ring full"}})
	s.process.Lost, s.process.Losses, s.process.Pauses, s.process.Execs, s.process.Ended = 7, "ring full 7", 1, 1, true
	s.process.Factor = 0
	m.Update(s.tick(), true)
	var b strings.Builder
	if err := m.WriteTable(&b, 3, 150); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"process 4711 (server), ended, traced for 00:00:01\n", "lost 7  paused 1 (ring full 7)  tracing costs not known yet\n",
		"process 4711 executed another program: ", "3 blocks may have been freed in a pause, and do not count as live\n",
		"events were lost: a block whose free is among them counts as live\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Growth is measured over the last minute.
func TestGrowth(t *testing.T) {
	s := newScene()
	m := New(s, Options{By: BySite, Order: OrderLive})
	s.alloc(0, 1, 1, 6000)
	m.Update(s.tick(), false)
	if got := m.Rows()[0].Growth; got != 6000 {
		t.Errorf("%v after the first second", got)
	}
	for range 100 {
		s.alloc(0, 1, 1, 10)
		m.Update(s.tick(), false)
	}
	if r := m.Rows()[0]; r.Growth != 10 || len(m.history.bars(&r)) != points {
		t.Errorf("%v, %d points", r.Growth, len(m.history.bars(&r)))
	}
	for range points {
		m.Update(s.tick(), false)
	}
	if got := m.Rows()[0].Growth; got != 0 {
		t.Errorf("%v after a minute without calls", got)
	}
}

// At 80 columns, the reason of a loss is still there when the cost is known.
func TestLossesFitOnANarrowTerminal(t *testing.T) {
	s := &Snapshot{Processes: []Process{{Lost: 1_797_420, Losses: "ring full 1797420", Share: 0.588, Factor: 2.43}}}
	if line := s.tracing(); !strings.Contains(line[:80], "(ring full 1797420)") {
		t.Error(line)
	}
}
