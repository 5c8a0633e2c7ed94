package record

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/process"
)

// model is a simple version of mappings, which searches all of them each time.
type model struct {
	current []process.Mapping
	gone    []process.Mapping // since the last step
	fresh   []process.Mapping
}

func (m *model) remove(gone func(process.Mapping) bool) {
	m.current = slices.DeleteFunc(m.current, func(old process.Mapping) bool {
		if gone(old) {
			m.gone = append(m.gone, old)
			return true
		}
		return false
	})
}

func (m *model) add(x process.Mapping, time uint64) {
	if slices.ContainsFunc(m.current, func(old process.Mapping) bool { return old.Same(x) && old.Seen >= time }) {
		return
	}
	x.Seen = max(x.Seen, time)
	m.remove(func(old process.Mapping) bool { return old.Overlaps(x) })
	m.current = append(m.current, x)
	m.fresh = append(m.fresh, x)
}

func (m *model) replace(all []process.Mapping, from, to uint64) {
	m.remove(func(old process.Mapping) bool {
		return old.Seen < from && !slices.ContainsFunc(all, func(x process.Mapping) bool {
			return old.Start >= x.Start && old.End <= x.End && old.Inode == x.Inode
		})
	})
	for _, x := range all {
		if !slices.ContainsFunc(m.current, func(old process.Mapping) bool {
			return old.Same(x) || old.Seen >= from && old.Overlaps(x)
		}) {
			x.Seen = to
			m.add(x, to)
		}
	}
}

// The ordered list behaves as the model, which is searched from end to end.
func TestMappingsAreAsTheirModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() process.Mapping {
		start := uint64(random.IntN(40)) << 12
		inode := uint64(1 + random.IntN(3))
		return process.Mapping{
			Start: start, End: start + uint64(1+random.IntN(6))<<12, Offset: uint64(random.IntN(2)) << 12,
			Inode: inode, Path: fmt.Sprintf("/lib%d", inode),
		}
	}
	key := func(kind string, start, end, offset uint64) string {
		return fmt.Sprintf("%s %x-%x %x", kind, start, end, offset)
	}
	var emitted []string
	ms := mappings{modules: map[string]bool{}, file: func(process.Mapping) process.FileInfo { return process.FileInfo{} }, moved: func(process.Mapping, process.FileInfo) {}}
	ms.emit = func(r trace.Record) {
		if m := &r.Mapping; r.Kind == trace.KindMapping || r.Kind == trace.KindUnmapping {
			emitted = append(emitted, key(r.Kind.String(), m.Start, m.End, m.Offset))
		}
	}
	var plain model
	for step := range 20000 {
		emitted, plain.gone, plain.fresh = emitted[:0], nil, nil
		time := uint64(step) * 10
		if random.IntN(5) == 0 {
			var all []process.Mapping
			for _, x := range append(slices.Clone(plain.current), some(), some()) {
				if random.IntN(4) > 0 && !slices.ContainsFunc(all, x.Overlaps) {
					all = append(all, x)
				}
			}
			slices.SortFunc(all, func(a, b process.Mapping) int { return cmp.Compare(a.Start, b.Start) })
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
			want = append(want, key(trace.KindUnmapping.String(), x.Start, x.End, x.Offset))
		}
		for _, x := range plain.fresh {
			want = append(want, key(trace.KindMapping.String(), x.Start, x.End, x.Offset))
		}
		slices.Sort(emitted)
		slices.Sort(want)
		if !slices.Equal(emitted, want) {
			t.Fatalf("step %d: got %v, want %v", step, emitted, want)
		}
		for page := range uint64(48) {
			addr := page<<12 + 7
			i := slices.IndexFunc(plain.current, func(x process.Mapping) bool { return x.Contains(addr) })
			if got := ms.at(addr); (got == nil) != (i < 0) || got != nil && *got != plain.current[i] {
				t.Fatalf("step %d: the mapping at %#x is %v", step, addr, got)
			}
		}
	}
}
