package profile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

// graphText formats nodes and edges, sorted.
func graphText(g *Graph) []string {
	var out []string
	for _, n := range g.Nodes {
		out = append(out, fmt.Sprintf("%s: self %s; total %s", n.Frame.Label(), usage(&n.Self), usage(&n.Total)))
		for _, e := range n.Children {
			out = append(out, fmt.Sprintf("%s > %s: %s", n.Frame.Label(), e.Child.Frame.Label(), usage(&e.Usage)))
		}
	}
	slices.Sort(out)
	return out
}

func TestGraph(t *testing.T) {
	g := profileOf(someCalls()...).Graph(View{})
	want := []string{
		"f: self 111 in 3, unfreed 101 in 2; total 111 in 3, unfreed 101 in 2",
		"g > f: 1 in 1, unfreed 1 in 1",
		"g: self 50 in 1, unfreed 50 in 1; total 51 in 2, unfreed 51 in 2",
		"h: self 50 in 1, unfreed 0 in 0; total 50 in 1, unfreed 0 in 0",
		"main > f: 110 in 2, unfreed 100 in 1",
		"main > g: 51 in 2, unfreed 51 in 2",
		"main > h: 50 in 1, unfreed 0 in 0",
		"main: self 0 in 0, unfreed 0 in 0; total 211 in 5, unfreed 151 in 3",
	}
	if d := cmp.Diff(want, graphText(g)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := usage(&g.Usage); got != "211 in 5, unfreed 151 in 3" {
		t.Errorf("total: %s", got)
	}
	var order, parents []string
	for i, n := range g.Nodes {
		order = append(order, n.Frame.Label())
		if n.Number != i+1 {
			t.Errorf("node %d has number %d", i+1, n.Number)
		}
		for _, e := range n.Parents {
			if e.Child != n {
				t.Errorf("%s lists an edge to %s as a parent", n.Frame.Label(), e.Child.Frame.Label())
			}
			parents = append(parents, n.Frame.Label()+"<"+e.Parent.Frame.Label())
		}
	}
	if d := cmp.Diff([]string{"main", "f", "g", "h"}, order); d != "" {
		t.Errorf("order of nodes (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"f<main", "f<g", "g<main", "h<main"}, parents); d != "" {
		t.Errorf("order of parents (-want +got):\n%s", d)
	}
	g = profileOf(alloc(1, 5, "a", "b", "c")).Graph(View{})
	if got := g.Nodes[0].Frame.Label() + g.Nodes[1].Frame.Label() + g.Nodes[2].Frame.Label(); got != "cba" {
		t.Errorf("functions with equal sums are in the order %s", got)
	}
	if n := len(profileOf(someCalls()...).Graph(View{Addresses: true}).Nodes); n != 5 {
		t.Errorf("%d places, want 5", n)
	}
}

func TestRecursion(t *testing.T) {
	got := graphText(profileOf(
		alloc(1, 100, "f", "f", "f", "main"),
		alloc(2, 10, "f", "g", "f", "g", "main"),
	).Graph(View{}))
	want := []string{
		"f > f: 100 in 1, unfreed 100 in 1",
		"f > g: 10 in 1, unfreed 10 in 1",
		"f: self 110 in 2, unfreed 110 in 2; total 110 in 2, unfreed 110 in 2",
		"g > f: 10 in 1, unfreed 10 in 1",
		"g: self 0 in 0, unfreed 0 in 0; total 10 in 1, unfreed 10 in 1",
		"main > f: 100 in 1, unfreed 100 in 1",
		"main > g: 10 in 1, unfreed 10 in 1",
		"main: self 0 in 0, unfreed 0 in 0; total 110 in 2, unfreed 110 in 2",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// model is the simplest implementation: it keeps all calls.
type model struct {
	calls []modelCall
	live  map[[2]uint64]int
}

type modelCall struct {
	pid   int32
	size  uint64
	stack []string
	freed bool
}

func (m *model) add(r *trace.Record) {
	c := &r.Call
	key := func(id uint64) [2]uint64 { return [2]uint64{uint64(r.PID), id} }
	free := func(id uint64) {
		if i, ok := m.live[key(id)]; ok {
			m.calls[i].freed = true
			delete(m.live, key(id))
		}
	}
	switch {
	case r.Kind == trace.KindExec:
		for i := range m.calls {
			if m.calls[i].pid == r.PID {
				m.calls[i].freed = true
			}
		}
		for k := range m.live {
			if k[0] == uint64(r.PID) {
				delete(m.live, k)
			}
		}
		return
	case c.Op == trace.OpFree:
		free(c.ID)
		return
	case c.Op == trace.OpMove:
		free(c.OldID)
	}
	m.live[key(c.ID)] = len(m.calls)
	m.calls = append(m.calls, modelCall{r.PID, c.Size, c.Stack.Names, false})
}

// sum adds up the calls that match.
func (m *model) sum(match func(c *modelCall) bool) (u Usage) {
	for i := range m.calls {
		c := &m.calls[i]
		if !match(c) {
			continue
		}
		class := DefaultBounds.Class(c.size)
		u.Allocated.add(class, c.size)
		if !c.freed {
			u.Unfreed.add(class, c.size)
		}
	}
	return u
}

func randomCalls(random *rand.Rand, n int) []*trace.Record {
	var out []*trace.Record
	for range n {
		stack := make([]string, 1+random.IntN(5))
		for i := range stack {
			stack[i] = string(rune('a' + random.IntN(4)))
		}
		id, size := 1+random.Uint64N(12), random.Uint64N(5000)>>random.IntN(12)
		pid := 1 + int32(random.IntN(2))
		switch random.IntN(60) {
		case 0:
			out = append(out, of(pid, exec()))
		case 1, 2, 3, 4:
			out = append(out, of(pid, move(random.Uint64N(13), id, size, stack...)))
		default:
			if random.IntN(3) == 0 {
				out = append(out, of(pid, free(id)))
			} else {
				out = append(out, of(pid, alloc(id, size, stack...)))
			}
		}
	}
	return out
}

// TestLikeModel compares all views of random traces with the model.
func TestLikeModel(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for round := range 60 {
		m := model{live: map[[2]uint64]int{}}
		p := profileOf()
		for _, r := range randomCalls(random, 300) {
			m.add(r)
			p.Add(r)
		}
		check := func(what string, got Usage, match func(c *modelCall) bool) {
			t.Helper()
			if d := cmp.Diff(m.sum(match), got); d != "" {
				t.Fatalf("round %d: %s (-want +got):\n%s", round, what, d)
			}
		}
		check("total", p.Total(), func(*modelCall) bool { return true })
		depth := 1 + round%4
		joined := func(stack []string) string { return strings.ReplaceAll(strings.Join(stack, "/"), "()", "") }
		var unfreed Sums
		for _, row := range p.Leaks(depth, View{}) {
			key, _, _ := strings.Cut(text([]*Row{row})[0], ":")
			check("leaks of "+key, row.Usage, func(c *modelCall) bool { return joined(c.stack[:min(depth, len(c.stack))]) == key })
			unfreed.Add(&row.Unfreed)
		}
		total := p.Total()
		if unfreed != total.Unfreed {
			t.Fatalf("round %d: leaks add up to %v, want %v", round, unfreed, total.Unfreed)
		}
		g := p.Graph(View{})
		for _, n := range g.Nodes {
			name := n.Frame.Label()
			check("self of "+name, n.Self, func(c *modelCall) bool { return joined(c.stack[:1]) == name })
			check("total of "+name, n.Total, func(c *modelCall) bool { return slices.Contains(c.stack, name+"()") })
			for _, e := range n.Children {
				edge := "/" + e.Child.Frame.Label() + "/" + name + "/"
				check("edge "+edge, e.Usage, func(c *modelCall) bool { return strings.Contains("/"+joined(c.stack)+"/", edge) })
			}
		}
		var bins Sizes
		bins.Count = make([]uint64, 1024)
		for _, c := range m.calls {
			if !c.freed {
				bins.add(c.size)
			}
		}
		if d := cmp.Diff(bins, p.Bins().Unfreed); d != "" {
			t.Fatalf("round %d: bins (-want +got):\n%s", round, d)
		}
	}
}
