package calltree_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/calltree"
	"rtrace-bpf/trace"
)

// alloc returns an allocation through frames with the given texts. Equal texts
// have equal addresses.
func alloc(function string, size, addr uint64, texts ...string) *trace.Record {
	r := &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Function: function, Resource: 1, Size: size, ID: addr}}
	for _, text := range texts {
		// Equal texts are equal addresses.
		at := uint64(0x1000)
		for _, c := range text {
			at = at*31 + uint64(c)
		}
		r.Call.Stack.Frames = append(r.Call.Stack.Frames, at)
		r.Call.Stack.Names = append(r.Call.Stack.Names, text)
	}
	return r
}

func build(o calltree.Options, records ...*trace.Record) *calltree.Tree {
	b := calltree.NewBuilder(o)
	for _, r := range records {
		b.Add(r)
	}
	return b.Tree()
}

// nodes formats the nodes that are not trimmed, each with its sums and its
// callees.
func nodes(t *calltree.Tree) []string {
	out := []string{}
	for _, n := range t.Nodes {
		if n.Trimmed {
			continue
		}
		text := fmt.Sprintf("%s %d/%d", n.Name, n.Calls, n.Bytes)
		for _, e := range n.Children {
			text += fmt.Sprintf(" -> %s %d/%d", e.Child.Name, e.Calls, e.Bytes)
			if !slices.Contains(e.Child.Parents, e) {
				text += " (not listed there)"
			}
		}
		out = append(out, text)
	}
	return out
}

const (
	leaf = "leaf() from /lib/libx.so.1"
	node = "node() at node.c:7"
	main = "main() from /bin/demo"
	libc = "from /lib/libc.so.6"
)

func TestTree(t *testing.T) {
	resources := []*trace.Record{
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "fd"}},
	}
	moved := alloc("realloc", 5, 1, main)
	moved.Call.Op = trace.OpMove
	freed := alloc("free", 0, 1, main)
	freed.Call.Op = trace.OpFree
	open := alloc("open", 1, 3, main)
	open.Call.Resource = 2
	open.Call.Args = []trace.Arg{{Name: "path", Value: "/etc/x "}, {Name: "flags", Value: "0"}}
	bare := alloc("malloc", 9, 1)
	bare.Call.Caller = trace.Caller{Function: "_Z1fv", File: "f.cc", Line: 3}
	unnamed := alloc("malloc", 3, 1)
	unnamed.Call.Stack = trace.Stack{Frames: []uint64{0x10, 0x20}}
	unnamed.PID = 7

	for _, c := range []struct {
		name    string
		options calltree.Options
		records []*trace.Record
		want    []string
	}{
		{name: "nothing", want: []string{}},
		{
			name:    "sums go outward",
			records: []*trace.Record{alloc("malloc", 10, 1, leaf, main), alloc("malloc", 4, 2, node, main), freed, moved},
			want: []string{
				"malloc 2/14",
				"leaf() in libx 1/10 -> malloc 1/10",
				"main() in demo 3/19 -> leaf() in libx 1/10 -> node() at node.c:7 1/4 -> realloc 1/5",
				"node() at node.c:7 1/4 -> malloc 1/4",
				"realloc 1/5",
			},
		},
		{
			name:    "recursion counts once",
			records: []*trace.Record{alloc("malloc", 10, 1, leaf, libc, leaf, libc, leaf)},
			want:    []string{"malloc 1/10", "leaf() in libx 1/10 -> malloc 1/10 -> libc 1/10", "libc 1/10 -> leaf() in libx 1/10"},
		},
		{
			name:    "unknown frames are left out",
			records: []*trace.Record{alloc("malloc", 1, 1, "in ??", "", main, "in ??")},
			want:    []string{"malloc 1/1", "main() in demo 1/1 -> malloc 1/1"},
		},
		{
			name:    "names are asked for",
			options: calltree.Options{Name: func(pid int32, addr uint64) string { return fmt.Sprintf("f%d%x() from /bin/p", pid, addr) }},
			records: []*trace.Record{unnamed},
			want:    []string{"malloc 1/3", "f710() in p 1/3 -> malloc 1/3", "f720() in p 1/3 -> f710() in p 1/3"},
		},
		{
			name:    "callers without a stack",
			options: calltree.Options{Source: func(s string) string { return strings.Replace(s, "_Z1fv", "f()", 1) }},
			records: []*trace.Record{bare},
			want:    []string{"malloc 1/9", "f() at f.cc:3 1/9 -> malloc 1/9"},
		},
		{
			name:    "types of resources",
			records: append(resources[:2:2], alloc("malloc", 1, 1, main), open),
			want:    []string{"malloc<memory> 1/1", "main() in demo 2/2 -> malloc<memory> 1/1 -> open<fd> 1/1", "open<fd> 1/1"},
		},
		{
			name:    "a single type is not shown",
			records: []*trace.Record{resources[0], alloc("malloc", 1, 1, main)},
			want:    []string{"malloc 1/1", "main() in demo 1/1 -> malloc 1/1"},
		},
		{
			name:    "arguments",
			options: calltree.Options{Args: true},
			records: []*trace.Record{open, alloc("malloc", 1, 1, main)},
			want:    []string{"/etc/x 1/1", "main() in demo 2/2 -> /etc/x 1/1 -> malloc 1/1", "malloc 1/1"},
		},
		{
			name:    "only some arguments",
			options: calltree.Options{OnlyArgs: []string{"/etc"}},
			records: []*trace.Record{open, alloc("malloc", 1, 1, main)},
			want:    []string{"/etc/x 1/1", "main() in demo 1/1 -> /etc/x 1/1"},
		},
		{
			name:    "sizes",
			options: calltree.Options{MinSize: 2, MaxSize: 4},
			records: []*trace.Record{alloc("malloc", 1, 1), alloc("malloc", 2, 1), alloc("malloc", 4, 1), alloc("malloc", 5, 1)},
			want:    []string{"malloc 2/6"},
		},
		{
			name:    "depth",
			options: calltree.Options{Depth: 1},
			records: []*trace.Record{alloc("malloc", 1, 1, leaf, main), alloc("malloc", 1, 1, leaf, node)},
			want:    []string{"malloc 2/2", "leaf() in libx 2/2 -> malloc 2/2"},
		},
		{
			name:    "stop",
			options: calltree.Options{Stop: []string{"nod"}},
			records: []*trace.Record{alloc("malloc", 1, 1, leaf, node, main)},
			want:    []string{"malloc 1/1", "leaf() in libx 1/1 -> malloc 1/1", "node() at node.c:7 1/1 -> leaf() in libx 1/1"},
		},
		{
			name:    "only",
			options: calltree.Options{Only: []string{"none", "node("}},
			records: []*trace.Record{alloc("calloc", 9, 1, leaf, main), alloc("malloc", 1, 1, node, main)},
			want:    []string{"malloc 1/1", "node() at node.c:7 1/1 -> malloc 1/1", "main() in demo 1/1 -> node() at node.c:7 1/1"},
		},
		{
			name:    "ignore",
			options: calltree.Options{Ignore: []string{"malloc", "main"}, IgnoreMiddle: []string{" at "}, Keep: []string{"main() in d"}},
			records: []*trace.Record{alloc("malloc", 1, 1, leaf, node, main), alloc("malloc", 2, 1, main)},
			want:    []string{"leaf() in libx 1/1", "main() in demo 2/3 -> leaf() in libx 1/1"},
		},
		{
			name:    "join",
			options: calltree.Options{Join: []string{"libx", "node.c", "std::f"}},
			records: []*trace.Record{alloc("malloc", 1, 1, leaf, "other() from /usr/libx.so", node, "more() at /src/node.c:9", "std::f(int) from /x", "std::f(char) from /y")},
			want: []string{
				"malloc 1/1", "libx 1/1 -> malloc 1/1 -> libx 1/1",
				"node.c 1/1 -> libx 1/1", "/src/node.c 1/1 -> node.c 1/1", "std::f() 1/1 -> /src/node.c 1/1 -> std::f() 1/1",
			},
		},
		{
			name:    "hostile names",
			records: []*trace.Record{alloc("m\x1b\n", 1, 1, "a\x1b[2J() from /bin/\x07", "from /")},
			want:    []string{"m?? 1/1", "a?[2J() in ? 1/1 -> m?? 1/1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := build(c.options, c.records...)
			if d := cmp.Diff(c.want, nodes(tree)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			var sum calltree.Sum
			for _, tr := range tree.Traces {
				sum.Calls += tr.Calls
				sum.Bytes += tr.Bytes
			}
			if sum != tree.Sum {
				t.Errorf("traces have %v, the tree %v", sum, tree.Sum)
			}
		})
	}
}

// Calls with the same stack are one trace, which has the highest address.
func TestTraces(t *testing.T) {
	tree := build(calltree.Options{}, alloc("malloc", 1, 30, main), alloc("malloc", 1, 99, leaf), alloc("malloc", 1, 50, main), alloc("malloc", 1, 40, main), alloc("calloc", 1, 10, main))
	var got []string
	for _, tr := range tree.Traces {
		got = append(got, fmt.Sprint(tr.ID, tr.Top, tr.Calls, len(tr.Nodes)))
	}
	if d := cmp.Diff([]string{"1 50 3 2", "2 99 1 2", "3 10 1 2"}, got); d != "" {
		t.Error(d)
	}
	n := tree.Nodes[1] // main, of 4 of 5 calls
	if bytes, calls := tree.Shares(n.Sum); bytes != 80 || calls != 80 {
		t.Errorf("shares %v, %v", bytes, calls)
	}
	if n.Own != (calltree.Ratio{Bytes: 4 / 5., Calls: 4 / 5.}) || !n.End {
		t.Errorf("main: %+v", n)
	}
}

func TestTrim(t *testing.T) {
	chain := func() *calltree.Tree {
		return build(calltree.Options{},
			alloc("malloc", 1, 1, "a()", "b()", "c()", "main()", "start()"),
			alloc("malloc", 2, 2, "d()", "main()", "start()"),
			alloc("calloc", 4, 3, "main()", "start()"))
	}
	tree := chain()
	tree.TrimEnds()
	want := []string{"malloc 2/3", "a() 1/1 -> malloc 1/1", "b() 1/1 -> a() 1/1", "c() 1/1 -> b() 1/1", "main() 3/7 -> c() 1/1 -> d() 1/2", "d() 1/2 -> malloc 1/2"}
	if d := cmp.Diff(want, nodes(tree)); d != "" {
		t.Errorf("ends (-want +got)\n%s", d)
	}
	tree = chain()
	tree.TrimMiddles()
	want = []string{"malloc 2/3", "main() 3/7 -> calloc 1/4 -> malloc 2/3", "start() 3/7 -> main() 3/7", "calloc 1/4"}
	if d := cmp.Diff(want, nodes(tree)); d != "" {
		t.Errorf("middles (-want +got)\n%s", d)
	}
	// A whole chain is one end; loops have no ends.
	tree = build(calltree.Options{}, alloc("malloc", 1, 1, "a()", "b()"))
	tree.TrimEnds()
	if d := cmp.Diff([]string{"b() 1/1"}, nodes(tree)); d != "" {
		t.Errorf("chain (-want +got)\n%s", d)
	}
	tree = build(calltree.Options{}, alloc("a()", 1, 1, "b()", "a()"), alloc("c", 1, 1, "c", "c"))
	before := nodes(tree)
	tree.TrimEnds()
	tree.TrimMiddles()
	if d := cmp.Diff(before, nodes(tree)); d != "" {
		t.Errorf("loops (-want +got)\n%s", d)
	}
}

func TestLibrary(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/lib/libc.so.6": "libc", "/opt/libstdc++.so.6.0.30": "libstdc++", "/bin/demo": "demo", "/x/ld-linux-x86-64.so.2": "ld-linux-x86-64",
		"[vdso]": "[vdso]", "/tmp/libplug.so (deleted)": "libplug", "/bin/demo (deleted)": "demo", "/run/a.socket": "a.socket", "/x/.so": ".so",
		"/lib/libfoo.so.so.1": "libfoo.so",
	} {
		if got := calltree.Library(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

// FuzzTree checks for any names that sums equal the added allocations and that
// both ends list each edge, before and after trimming.
func FuzzTree(f *testing.F) {
	f.Add("malloc", main+"\n"+libc+"\n"+libc, leaf+"\n"+main, true)
	f.Add("a", "a\nb\na", "b\na", false)
	f.Fuzz(func(t *testing.T, function, one, two string, swap bool) {
		tree := build(calltree.Options{Join: []string{"b"}},
			alloc(function, 3, 1, strings.Split(one, "\n")...), alloc("f", 4, 2, strings.Split(two, "\n")...), alloc(function, 1, 1))
		if tree.Sum != (calltree.Sum{Calls: 3, Bytes: 8}) {
			t.Fatalf("%+v", tree.Sum)
		}
		if swap {
			tree.TrimMiddles()
		}
		tree.TrimEnds()
		tree.TrimMiddles()
		for _, n := range tree.Nodes {
			if n.Calls > 3 || n.Bytes > 8 || n.Trimmed && len(n.Children)+len(n.Parents) > 0 {
				t.Fatalf("%+v", n)
			}
			for _, e := range n.Children {
				if e.Parent != n || e.Child.Trimmed || !slices.Contains(e.Child.Parents, e) {
					t.Fatalf("%q: %+v", n.Name, e)
				}
			}
		}
	})
}
