package plan

import (
	"slices"

	"rtrace-bpf/tracer/site"
)

// maxTails is the most functions that are looked at to see where one ends.
const maxTails = 64

// tails reports whether a function may end in a jump to another probed function, directly
// or through functions that are not probed. In a function that may wrap another allocator's,
// a jump through a pointer counts as such a jump.
func (c *code) tails(f *Function) bool {
	seen := map[uint64]bool{}
	next := []uint64{f.symbol.Addr}
	for len(next) > 0 && len(seen) < maxTails {
		at := next[0]
		next = next[1:]
		if name, ok := c.links.target(at); ok && name != f.Name {
			return true
		}
		start, end, ok := at, at+f.symbol.Size, true
		if at != f.symbol.Addr || f.symbol.Size == 0 {
			start, end, ok = c.bounds.around(at)
		}
		if !ok { // a stub that the linker made on arm64 has neither frame information nor a symbol
			start, end = at, at+site.StubSize
		}
		if seen[start] {
			continue
		}
		seen[start] = true
		body := c.text.between(start, min(end, start+maxFunction))
		if f.wraps && site.Open(c.machine.Arch, body, start) {
			return true
		}
		for _, b := range site.Direct(c.machine.Arch, body, start) {
			if !b.Call && (b.To < start || b.To >= end) {
				next = append(next, b.To)
			}
		}
	}
	return len(f.Site.TailCalls) > 0 && !slices.Equal(f.Site.TailCalls, []string{f.Name})
}
