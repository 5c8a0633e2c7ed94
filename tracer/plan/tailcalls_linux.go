package plan

import (
	"slices"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/tracer/site"
)

// maxTails is the most functions that are looked at to see where one ends.
const maxTails = 64

// tails reports whether a function may end in a jump to another probed function, directly
// or through functions that are not probed. In a function that may wrap another allocator's,
// a jump through a pointer counts as such a jump.
func (c *code) tails(f *Function) bool {
	seen := map[uint64]bool{}
	next := []uint64{f.addr}
	for len(next) > 0 && len(seen) < maxTails {
		at := next[0]
		next = next[1:]
		if name, ok := c.target(at); ok && name != f.Name {
			return true
		}
		start, end, ok := at, at+f.size, true
		if at != f.addr || f.size == 0 {
			start, end, ok = c.around(at)
		}
		if !ok { // a stub that the linker made on arm64 has neither frame information nor a symbol
			start, end = at, at+site.StubSize
		}
		if seen[start] {
			continue
		}
		seen[start] = true
		body := c.between(start, min(end, start+maxFunction))
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

// around returns the bounds of the function that contains addr, from the call frame
// information or else the symbols.
func (c *code) around(addr uint64) (start, end uint64, ok bool) {
	if index := c.allFrames(); index != nil {
		if fde, ok := index.Find(addr); ok {
			return fde.Start, fde.End, true
		}
	}
	sym, ok := c.lib.file.Lookup(addr)
	return sym.Addr, sym.Addr + sym.Size, ok && sym.Size > 0 && sym.Size < maxFunction
}

// allFrames returns the call frame information of the file, or nil if it has none. It is
// read at the first call.
func (c *code) allFrames() *cfi.Index {
	if !c.indexed {
		c.indexed = true
		if sections, err := cfi.Sections(c.lib.file); err == nil {
			c.index, _ = cfi.NewIndex(sections...) // broken entries are not the allocator's
		}
	}
	return c.index
}
