package sites

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// leaked returns a call that allocated a block that stayed.
func leaked(seq, size uint64, pid, tid int32, texts ...string) *trace.Record {
	r := &trace.Record{Kind: trace.KindCall, Time: int64(seq) * 10, PID: pid, TID: tid}
	r.Call = trace.Call{Seq: seq, Op: trace.OpAlloc, Function: "malloc", ID: 0x1000 + seq, Size: size}
	for i, text := range texts {
		r.Call.Stack.Frames = append(r.Call.Stack.Frames, 0x400000+seq<<8+uint64(i))
		r.Call.Stack.Names = append(r.Call.Stack.Names, text)
	}
	return r
}

func calledBy(r *trace.Record, function, file string, line uint64) *trace.Record {
	r.Call.Caller = trace.Caller{Function: function, File: file, Line: line}
	return r
}

func blocks() []*trace.Record {
	return []*trace.Record{
		leaked(1, 100, 1, 1, "f() at a.c:1", "main() at a.c:9"),
		leaked(2, 50, 1, 2, "f() at a.c:2", "main() at a.c:9"),
		leaked(3, 100, 1, 1, "f() at a.c:1", "main() at a.c:8"),
		leaked(4, 7, 2, 2, "from /lib/z.so", "main() from /bin/p"),
		leaked(5, 7, 2, 2, "from /lib/z.so", "main() from /bin/p"),
		calledBy(leaked(6, 60, 0, 0), "g", "b.c", 3),
		calledBy(leaked(7, 60, 0, 0), "g", "b.c", 4),
		leaked(8, 1, 0, 0),
	}
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		want    []string
	}{
		{"stack", Options{}, []string{
			"[f at a.c:1 main at a.c:9]: 1 100", "[f at a.c:1 main at a.c:8]: 1 100", "[g at b.c:3]: 1 60", "[g at b.c:4]: 1 60",
			"[f at a.c:2 main at a.c:9]: 1 50", "[0x0000000000400400 from /lib/z.so main from /bin/p]: 1 7",
			"[0x0000000000400500 from /lib/z.so main from /bin/p]: 1 7", "[??]: 1 1",
		}},
		{"stack of depth 1", Options{Depth: 1}, []string{
			"[f at a.c:1]: 2 200", "[g at b.c:3]: 1 60", "[g at b.c:4]: 1 60", "[f at a.c:2]: 1 50",
			"[0x0000000000400400 from /lib/z.so]: 1 7", "[0x0000000000400500 from /lib/z.so]: 1 7", "[??]: 1 1",
		}},
		{"addresses of depth 1", Options{Depth: 1, Addresses: true}, []string{
			"[f at a.c:1]: 1 100", "[f at a.c:1]: 1 100", "[g at b.c:3]: 1 60", "[g at b.c:4]: 1 60", "[f at a.c:2]: 1 50",
			"[0x0000000000400400 from /lib/z.so]: 1 7", "[0x0000000000400500 from /lib/z.so]: 1 7", "[??]: 1 1",
		}},
		{"function", Options{By: ByFunction}, []string{
			"[f]: 3 250", "[g]: 2 120", "[0x0000000000400400 from /lib/z.so]: 1 7", "[0x0000000000400500 from /lib/z.so]: 1 7", "[??]: 1 1",
		}},
		{"file", Options{By: ByFile}, []string{"[at a.c]: 3 250", "[at b.c]: 2 120", "[??]: 3 15"}},
		{"line", Options{By: ByLine}, []string{
			"[f at a.c:1]: 2 200", "[g at b.c:3]: 1 60", "[g at b.c:4]: 1 60", "[f at a.c:2]: 1 50",
			"[0x0000000000400400 from /lib/z.so]: 1 7", "[0x0000000000400500 from /lib/z.so]: 1 7", "[??]: 1 1",
		}},
		{"module", Options{By: ByModule, Module: func(pid int32, addr uint64) string { return fmt.Sprintf("/%d/%x", pid, addr>>12) }}, []string{
			"[from /1/400]: 3 250", "[??]: 3 121", "[from /lib/z.so]: 2 14",
		}},
		{"size", Options{By: BySize}, []string{"size 100: 2 200", "size 60: 2 120", "size 50: 1 50", "size 7: 2 14", "size 1: 1 1"}},
		{"thread", Options{By: ByThread}, []string{"thread 1/1: 2 200", "thread 0/0: 3 121", "thread 1/2: 1 50", "thread 2/2: 2 14"}},
		{"process", Options{By: ByProcess}, []string{"process 1: 3 250", "process 0: 3 121", "process 2: 2 14"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewGrouper(tt.options)
			for _, r := range blocks() {
				g.Add(r)
			}
			var got []string
			for _, x := range g.Groups() {
				key := fmt.Sprint(x.Frames)
				switch tt.options.By {
				case BySize:
					key = fmt.Sprint("size ", x.Size)
				case ByThread:
					key = fmt.Sprintf("thread %d/%d", x.PID, x.TID)
				case ByProcess:
					key = fmt.Sprint("process ", x.PID)
				}
				got = append(got, fmt.Sprintf("%s: %d %d", key, x.Blocks, x.Bytes))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// A thread may be known only by the program's own id for it.
func TestThreadsOfPrograms(t *testing.T) {
	g := NewGrouper(Options{By: ByThread})
	for i, thread := range []uint64{1 << 40, 2 << 40, 1 << 40} {
		r := leaked(uint64(i), 10, 0, 0)
		r.Call.Thread = thread
		g.Add(r)
	}
	if x := g.Groups(); len(x) != 2 || x[0].Thread != 1<<40 || x[0].Blocks != 2 {
		t.Errorf("%d groups, %+v", len(x), x[0])
	}
}

// The caller that a resolver found is better than a text without a file. It
// keeps the module of the frame only if it is the same function.
func TestCallerWins(t *testing.T) {
	for by, want := range map[Key]string{
		ByLine:     "[[inlined at a.h:5] [f at b.c:6] [f at a.c:3]]",
		ByFile:     "[[at a.h] [at b.c] [at a.c]]",
		ByFunction: "[[inlined] [f from /bin/p] [f]]",
		ByModule:   "[[from /bin/p] [??]]",
		ByStack:    "[[f from /bin/p] [f at a.c:3]]",
	} {
		g := NewGrouper(Options{By: by})
		g.Add(calledBy(leaked(1, 9, 1, 1, "f() from /bin/p"), "inlined", "a.h", 5))
		g.Add(calledBy(leaked(2, 8, 1, 1, "f() from /bin/p"), "f", "b.c", 6))
		g.Add(calledBy(leaked(3, 7, 1, 1, "f() at a.c:3"), "other", "b.c", 5))
		var got [][]Frame
		for _, x := range g.Groups() {
			got = append(got, x.Frames)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("by %v: %v, want %s", by, got, want)
		}
	}
}

func TestBlocksOfGroups(t *testing.T) {
	g := NewGrouper(Options{By: ByFunction, Blocks: true})
	for _, r := range blocks() {
		r.Call.Index, r.Call.Thread = 2*r.Call.Seq, r.Call.Seq&1
		g.Add(r)
	}
	top := g.Groups()[0]
	want := []Block{
		{0x1001, 100, 2, 1, 10, 1, 1, 1, "malloc"}, {0x1002, 50, 4, 2, 20, 1, 2, 0, "malloc"}, {0x1003, 100, 6, 3, 30, 1, 1, 1, "malloc"},
	}
	if d := cmp.Diff(want, top.List); d != "" {
		t.Errorf("blocks (-want +got):\n%s", d)
	}
	if top.Smallest != 50 || top.Largest != 100 || top.FirstSeq != 1 || top.FirstTime != 10 {
		t.Errorf("%+v", top)
	}
}

// TestChosenCaller checks that a caller further out than the innermost frame
// has the module and the address of its own frame.
func TestChosenCaller(t *testing.T) {
	choose := func(_ int32, s *trace.Stack) (trace.Caller, int) {
		at := len(s.Frames) - 2
		if at < 0 {
			return trace.Caller{}, -1
		}
		return trace.Caller{Function: "f"}, at
	}
	for _, tt := range []struct {
		addresses bool
		want      []string
	}{
		{false, []string{"f from /bin/p: 3", "g from /bin/p: 1"}},
		{true, []string{"0x0000000000400201 f: 2", "0x0000000000400300 f: 1", "0 g: 1"}},
	} {
		g := NewGrouper(Options{By: ByFunction, Addresses: tt.addresses, Caller: choose})
		for range 2 {
			g.Add(leaked(2, 10, 1, 1, "strdup() from /lib/c.so", "f() from /bin/p", "main() from /bin/p"))
		}
		g.Add(leaked(3, 9, 1, 1, "f() from /bin/p", "main() from /bin/p"))
		stated := calledBy(leaked(4, 8, 1, 1, "g() from /bin/p", "main() from /bin/p"), "g", "", 0)
		if tt.addresses {
			stated = calledBy(leaked(4, 8, 1, 1, "copy() from /lib/d.so", "g() from /bin/p"), "g", "", 0)
		}
		g.Add(stated)
		var got []string
		for _, x := range g.Groups() {
			f := x.Frames[0]
			text := f.String()
			if tt.addresses {
				text = f.Address() + " " + f.Function
				if f.Addr == 0 {
					text = "0 " + f.Function
				}
			}
			got = append(got, fmt.Sprintf("%s: %d", text, x.Blocks))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("addresses %v (-want +got):\n%s", tt.addresses, d)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, name := range KeyNames() {
		if k, ok := ParseKey(name); !ok || k.String() != name {
			t.Errorf("%s: %v, %v", name, k, ok)
		}
	}
	if _, ok := ParseKey("colour"); ok {
		t.Error("the key colour is accepted")
	}
}

// TestGroupsLikeModel compares the groups of random blocks with sums from a
// simple model.
func TestGroupsLikeModel(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 50 {
		by := Key(random.IntN(len(keyNames)))
		depth := random.IntN(4)
		g := NewGrouper(Options{By: by, Depth: depth})
		type sum struct{ blocks, bytes uint64 }
		model := map[string]sum{}
		var total sum
		for i := range 300 {
			var texts []string
			for range 1 + random.IntN(3) {
				texts = append(texts, fmt.Sprintf("f%d() at f.c:%d", random.IntN(3), random.IntN(3)+1))
			}
			r := leaked(uint64(i), random.Uint64N(5), int32(random.IntN(2)), int32(random.IntN(3)), texts...)
			g.Add(r)
			used := texts
			if depth > 0 {
				used = texts[:min(depth, len(texts))]
			}
			key := [...]string{
				ByStack: fmt.Sprint(used), ByFunction: texts[0][:2], ByFile: "f.c", ByLine: texts[0], ByModule: "",
				BySize: fmt.Sprint(r.Call.Size), ByThread: fmt.Sprint(r.PID, r.TID), ByProcess: fmt.Sprint(r.PID),
			}[by]
			m := model[key]
			model[key] = sum{m.blocks + 1, m.bytes + r.Call.Size}
			total = sum{total.blocks + 1, total.bytes + r.Call.Size}
		}
		var got, want []sum
		for _, x := range g.Groups() {
			got = append(got, sum{x.Blocks, x.Bytes})
		}
		for _, m := range model {
			want = append(want, m)
		}
		order := func(a, b sum) int { return int(b.bytes*1000+b.blocks) - int(a.bytes*1000+a.blocks) }
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d by %v, depth %d: %v, want %v", round, by, depth, got, want)
		}
		if n, bytes := g.Total(); n != total.blocks || bytes != total.bytes {
			t.Fatalf("round %d: total %d, %d; want %v", round, n, bytes, total)
		}
	}
}
