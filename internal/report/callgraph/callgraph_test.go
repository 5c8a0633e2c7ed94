package callgraph_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/calltree"
	"rtrace-bpf/internal/report/callgraph"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// tree returns the tree of allocations that are written as "SIZE@ADDRESS
// frame|frame".
func tree(o calltree.Options, lines ...string) *calltree.Tree {
	b := calltree.NewBuilder(o)
	for _, line := range lines {
		r := trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, Function: "malloc"}}
		amount, texts, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscanf(amount, "%d@%d", &r.Call.Size, &r.Call.ID); err != nil {
			panic(err)
		}
		for i, text := range strings.Split(texts, "|") {
			r.Call.Stack.Frames = append(r.Call.Stack.Frames, uint64(i))
			r.Call.Stack.Names = append(r.Call.Stack.Names, text)
		}
		b.Add(&r)
	}
	return b.Tree()
}

var options = callgraph.Options{Limit: 10, EmphLimit: 60, OwnLimit: 1.2, Depth: 1}

// write writes a graph, checks its syntax, and returns its nodes and arrows.
func write(t *testing.T, tr *calltree.Tree, o *callgraph.Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := callgraph.Write(&out, tr, o); err != nil {
		t.Fatal(err)
	}
	if _, _, err := checkDot(out.String()); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	_, body, _ := strings.Cut(out.String(), "labelloc=")
	_, body, ok := strings.Cut(body, "\";\n\n")
	if !ok {
		t.Fatal(out.String())
	}
	return strings.TrimSuffix(body, "}\n")
}

var demo = []string{
	"82@1 big() from /a/libx.so|main() from /bin/demo",
	"2@9 one() from /bin/demo|main() from /bin/demo",
	"1@3 two() from /bin/demo|main() from /bin/demo",
	"1@2 two() from /bin/demo|main() from /bin/demo",
}

// The expected texts were worked out by hand: 86 bytes and 32 for four blocks
// are 118.
func TestGraph(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*callgraph.Options)
		want   string
	}{
		{"bytes", func(*callgraph.Options) {}, `
N0 [label="malloc\n100% (0KB / 4)" style=bold color=red shape=diamond style=filled fillcolor=lightgray];
N1 [label="big()\nin libx\n76% (0KB / 1)" style=bold color=red];
N2 [label="main()\nin demo\n100% (0KB / 4)" style=bold color=red shape=diamond style=filled fillcolor=lightgray];
U0 [label="a function\n8% (0KB / 1)"];
N4 [label="two()\nin demo\n15% (0KB / 2)"];
N1 -> N0;
N2 -> N1;
N2 -> N4;
N2 -> U0;
N4 -> N0;
`},
		{"upward, nothing hidden stands", func(o *callgraph.Options) { o.BottomUp, o.HideBelow, o.EdgeLimit = true, true, 76 }, `
N0 [label="malloc\n100% (0KB / 4)" style=bold color=red shape=diamond style=filled fillcolor=lightgray];
N1 [label="big()\nin libx\n76% (0KB / 1)" style=bold color=red];
N2 [label="main()\nin demo\n100% (0KB / 4)" style=bold color=red shape=diamond style=filled fillcolor=lightgray];
N4 [label="two()\nin demo\n15% (0KB / 2)"];
N0 -> N1;
N1 -> N2;
`},
		{"count", func(o *callgraph.Options) { o.Type, o.Limit, o.EmphLimit, o.OwnLimit = callgraph.Count, 50, 50, 1 }, `
N0 [label="malloc\n100% (4)" style=filled fillcolor=lightgray color=red shape=diamond style=filled fillcolor=lightgray];
N2 [label="main()\nin demo\n100% (4)" style=filled fillcolor=lightgray color=red shape=diamond style=filled fillcolor=lightgray];
U0 [label="2 functions\n50% (2)"];
N4 [label="two()\nin demo\n50% (2)" style=bold color=red];
N2 -> N4;
N2 -> U0;
N4 -> N0;
`},
		{"topmost", func(o *callgraph.Options) { o.Type, o.Limit, o.EmphLimit = callgraph.Topmost, 100, 101 }, `
N0 [label="malloc\n100% (0KB / 4)" shape=diamond style=filled fillcolor=lightgray];
N2 [label="main()\nin demo\n100% (0KB / 4)" shape=diamond style=filled fillcolor=lightgray];
U0 [label="2 functions\n91% (0KB / 3)"];
N3 [label="one()\nin demo\n8% (0KB / 1)"];
N2 -> N3;
N2 -> U0;
N3 -> N0;
`},
		{"clusters", func(o *callgraph.Options) { o.Cluster, o.Limit = []string{"demo", "nothing"}, 90 }, `
subgraph "cluster-demo" {
label="demo";
N2 [label="main()\nin demo\n100% (0KB / 4)" style=bold color=red shape=diamond style=filled fillcolor=lightgray];
U0 [label="3 functions\n100% (0KB / 4)"];
}
N0 [label="malloc\n100% (0KB / 4)" style=bold color=red shape=diamond style=filled fillcolor=lightgray];
N2 -> U0;
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options
			c.change(&o)
			if d := cmp.Diff(strings.TrimPrefix(c.want, "\n"), write(t, tree(calltree.Options{}, demo...), &o)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	for typ, want := range map[callgraph.Type]string{
		callgraph.Bytes:   `Allocation size totals callgraph\nFunctions through which >=10.0% amount of the allocations total were done\n\n(a \"b\"\\)`,
		callgraph.Count:   `Allocation counts callgraph\nFunctions which did or caused >=10.0% of all allocations\n\n(a \"b\"\\)`,
		callgraph.Topmost: `Functions involved in 1 topmost allocations\n\n(a \"b\"\\)`,
	} {
		o := options
		o.Type, o.About = typ, `a "b"\`
		var out bytes.Buffer
		if err := callgraph.Write(&out, tree(calltree.Options{}, demo...), &o); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "label=\""+want+"\";\n") {
			t.Errorf("%v: %s", typ, out.String())
		}
		if typ == callgraph.Topmost && !strings.HasPrefix(out.String(), "# 0x9: 2\n\n# Convert") {
			t.Errorf("%s", out.String())
		}
	}
}

// Names may contain characters that have a meaning in dot; parameters are left
// out.
func TestNames(t *testing.T) {
	tr := tree(calltree.Options{}, `1@1 operator"" _x\(char const*) from /q"\|a::f(std::vector<int>&, void (*)(int)) const at b\n".c:3|plain|from /lib/[x];->{`)
	o := options
	got := write(t, tr, &o)
	for _, want := range []string{
		`N1 [label="operator\"\" _x\\()\nin q\"\\\n100%`, `N2 [label="a::f()\nat b\\n\".c:3\n100%`, `N3 [label="plain\n100%`, `N4 [label="[x];->{\n100%`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	o.Parameters = true
	if got = write(t, tr, &o); !strings.Contains(got, `a::f(std::vector<int>&, void (*)(int)) const\nat`) {
		t.Errorf("%s", got)
	}
}

// An empty tree is a graph without nodes.
func TestEmpty(t *testing.T) {
	for typ := range callgraph.Topmost + 1 {
		o := options
		o.Type = typ
		if got := write(t, tree(calltree.Options{}), &o); got != "" {
			t.Errorf("%v: %q", typ, got)
		}
	}
}

// Graphviz itself accepts the graphs that the tests above write.
func TestGraphviz(t *testing.T) {
	dot := testutil.Installed(t, "dot")
	for _, lines := range [][]string{nil, demo, {`1@1 operator"" _x\(char const*) from /q"\|a::f() at b\n".c:3`}} {
		o := options
		o.Cluster = []string{"demo", `q"\`}
		var in, out, errOut bytes.Buffer
		if err := callgraph.Write(&in, tree(calltree.Options{}, lines...), &o); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), dot, "-Tsvg")
		c.Stdin, c.Stdout, c.Stderr = &in, &out, &errOut
		if err := c.Run(); err != nil || errOut.Len() > 0 || !strings.Contains(out.String(), "</svg>") {
			t.Errorf("%v, %s", err, errOut.String())
		}
	}
}

// An error of the output is returned.
func TestWriteError(t *testing.T) {
	if err := callgraph.Write(broken{}, tree(calltree.Options{}, demo...), &options); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// FuzzWrite checks that the output is a valid graph for any names.
func FuzzWrite(f *testing.F) {
	f.Add("main() from /bin/x", `a"\`, "about\n")
	f.Fuzz(func(t *testing.T, one, two, about string) {
		tr := tree(calltree.Options{}, "1@1 "+one+"|"+two)
		o := options
		o.About, o.Cluster = about, []string{calltree.Library(one), two}
		var out bytes.Buffer
		if err := callgraph.Write(&out, tr, &o); err != nil {
			t.Fatal(err)
		}
		if _, _, err := checkDot(out.String()); err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
	})
}
