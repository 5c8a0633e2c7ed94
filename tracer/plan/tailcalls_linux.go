package plan

import (
	"slices"
	"strings"

	"rtrace-bpf/tracer/site"
)

// maxTails is the most functions that are looked at to see where one ends.
const maxTails = 64

// jumpsAway reports whether an operator may end in a jump to an operator, or to a function of
// an allocator. Then that function has the operator's frame.
func (c *code) jumpsAway(op *Function) bool {
	seen := map[uint64]bool{}
	next := []uint64{op.symbol.Addr}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if name, ok := c.links.target(at); ok && name != op.Name {
			return true
		}
		if slot, ok := site.Stub(c.sites(), c.text.from(at, site.StubSize), at); ok {
			if leadsToAllocator(c.links.slots[slot]) {
				return true
			}
			continue
		}
		start, end, ok := c.bounds.around(at)
		if !ok || len(seen) == maxTails {
			return true // not known
		}
		if seen[start] {
			continue
		}
		seen[start] = true
		body := c.text.between(start, min(end, start+maxFunction))
		for _, p := range site.Pointers(c.machine.Arch, body, start) {
			if name, known := c.links.slots[p.Slot]; !p.Call && (!known || leadsToAllocator(name)) {
				return true
			}
		}
		for _, b := range site.Direct(c.machine.Arch, body, start) {
			if !b.Call && (b.To < start || b.To >= end) {
				next = append(next, b.To)
			}
		}
	}
	return false
}

// leadsToAllocator reports whether name is that of a function of C's allocator or of an
// operator new or delete.
func leadsToAllocator(name string) bool {
	return isOfC(name) || strings.HasPrefix(name, "_Zn") || strings.HasPrefix(name, "_Zd")
}

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
