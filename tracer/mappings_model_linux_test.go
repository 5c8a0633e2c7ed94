package tracer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"rtrace-bpf/trace"
)

// model does what mappings does in the plainest way: it looks at all of them.
type model struct {
	current []mapping
	gone    []mapping // since the last step
	fresh   []mapping
}

func (m *model) remove(gone func(mapping) bool) {
	m.current = slices.DeleteFunc(m.current, func(old mapping) bool {
		if gone(old) {
			m.gone = append(m.gone, old)
			return true
		}
		return false
	})
}

func (m *model) add(x mapping, time uint64) {
	if slices.ContainsFunc(m.current, func(old mapping) bool { return old.same(x) && old.seen >= time }) {
		return
	}
	x.seen = max(x.seen, time)
	m.remove(func(old mapping) bool { return old.overlaps(x) })
	m.current = append(m.current, x)
	m.fresh = append(m.fresh, x)
}

func (m *model) replace(all []mapping, from, to uint64) {
	m.remove(func(old mapping) bool {
		return old.seen < from && !slices.ContainsFunc(all, func(x mapping) bool {
			return old.start >= x.start && old.end <= x.end && old.inode == x.inode
		})
	})
	for _, x := range all {
		if !slices.ContainsFunc(m.current, func(old mapping) bool {
			return old.same(x) || old.seen >= from && old.overlaps(x)
		}) {
			x.seen = to
			m.add(x, to)
		}
	}
}

// The ordered list says the same as one that is searched from end to end.
func TestMappingsAreAsTheirModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() mapping {
		start := uint64(random.IntN(40)) << 12
		inode := uint64(1 + random.IntN(3))
		return mapping{
			start: start, end: start + uint64(1+random.IntN(6))<<12, offset: uint64(random.IntN(2)) << 12,
			inode: inode, path: fmt.Sprintf("/lib%d", inode),
		}
	}
	key := func(kind string, start, end, offset uint64) string {
		return fmt.Sprintf("%s %x-%x %x", kind, start, end, offset)
	}
	var told []string
	ms := mappings{modules: map[string]bool{}, file: func(mapping) fileInfo { return fileInfo{} }, moved: func(mapping, fileInfo) {}}
	ms.emit = func(r trace.Record) {
		if m := &r.Mapping; r.Kind == trace.KindMapping || r.Kind == trace.KindUnmapping {
			told = append(told, key(r.Kind.String(), m.Start, m.End, m.Offset))
		}
	}
	var plain model
	for step := range 20000 {
		told, plain.gone, plain.fresh = told[:0], nil, nil
		time := uint64(step) * 10
		if random.IntN(5) == 0 {
			var all []mapping
			for _, x := range append(slices.Clone(plain.current), some(), some()) {
				if random.IntN(4) > 0 && !slices.ContainsFunc(all, x.overlaps) {
					all = append(all, x)
				}
			}
			slices.SortFunc(all, func(a, b mapping) int { return cmp.Compare(a.start, b.start) })
			from := time - min(time, uint64(random.IntN(60)))
			ms.replace(all, from, time)
			plain.replace(all, from, time)
		} else {
			x, at := some(), time-min(time, uint64(random.IntN(30)))
			ms.add(x, at)
			plain.add(x, at)
		}
		var want []string
		for _, x := range plain.gone {
			want = append(want, key(trace.KindUnmapping.String(), x.start, x.end, x.offset))
		}
		for _, x := range plain.fresh {
			want = append(want, key(trace.KindMapping.String(), x.start, x.end, x.offset))
		}
		slices.Sort(told)
		slices.Sort(want)
		if !slices.Equal(told, want) {
			t.Fatalf("step %d: told %v, want %v", step, told, want)
		}
		for page := range uint64(48) {
			addr := page<<12 + 7
			i := slices.IndexFunc(plain.current, func(x mapping) bool { return x.contains(addr) })
			if got := ms.at(addr); (got == nil) != (i < 0) || got != nil && *got != plain.current[i] {
				t.Fatalf("step %d: at %#x is %v", step, addr, got)
			}
		}
	}
}
