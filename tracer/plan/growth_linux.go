package plan

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/tracer/site"
)

// Growth is a call with which the allocator gets memory from the system. The probe sits on
// the call, not in the function, so that the program's own calls of the function cost
// nothing.
type Growth struct {
	Function string    // sbrk, mmap …
	Call     Probe     // on the call
	Result   Probe     // after the call
	Site     site.Site // of Result

	// Nested reports that the call may belong to other code than the allocator. It then
	// counts only while the thread is inside a traced function.
	Nested bool

	addr uint64 // of the call, in the file
}

// maxGrowths is the most calls that are probed; glibc has a dozen.
const maxGrowths = 64

// chooseGrowths finds the allocator's calls of the functions in growthModule, and a site
// after each.
func (p *Plan) chooseGrowths(c *code, functions []Function) {
	wrappers := map[uint64]*growthRow{}
	for i := range growthModule {
		r := &growthModule[i]
		if sym, ok := c.lib.file.Defined(r.symbol); ok && wrappers[sym.Addr] == nil {
			wrappers[sym.Addr] = r
		}
	}
	calls := c.growthCalls(functions, wrappers)
	if len(calls) == 0 || len(calls) > maxGrowths {
		p.Options.Warnf("heap growth is not recorded: %d calls in %s look like the allocator's", len(calls), c.lib.mapping.Path)
		return
	}
	for _, call := range calls {
		g, ok := p.chooseGrowth(c, call, wrappers[call.To])
		if !ok {
			p.Options.Warnf("heap growth by the call of %s at %#x is not recorded: its result cannot be probed", wrappers[call.To].symbol, call.From)
			continue
		}
		p.growths = append(p.growths, g)
	}
}

// growthCall is a call in the allocator's code of a wrapper: a function in growthModule.
type growthCall struct {
	site.Branch
	nested   bool          // see Growth.Nested
	rest     []byte        // the code after the call, to the end of the function that calls
	branches []site.Branch // of that function
}

// chooseGrowth finds a site for the result of a call of the function r.
func (p *Plan) chooseGrowth(c *code, call growthCall, r *growthRow) (Growth, bool) {
	g := Growth{Function: r.symbol, Nested: call.nested, addr: call.From}
	var err error
	g.Site, err = site.Choose(c.sites(), site.Function{
		Name: r.symbol, Entry: call.Next, Code: call.rest, Args: []int{0}, AfterCall: true, Incoming: call.branches,
	})
	if err != nil {
		return g, false
	}
	atCall, ok := c.probe(r.symbol, call.From)
	atResult, ok2 := c.probe(r.symbol, g.Site.Addr)
	atCall.Site = uint64(r.operation) << 10
	if g.Nested {
		atCall.Site |= 1 << 39
	}
	atResult.Site = uint64(g.Site.Args[0].Reg)<<24 | uint64(g.Site.StackAdjust)/c.machine.Word<<29
	g.Call, g.Result = atCall, atResult
	return g, ok && ok2
}

// growthCalls returns the allocator's calls of the wrappers, by their address in the file,
// ascending.
//
// The allocator is the code that direct branches reach from the traced functions, without
// leavesAllocator (a failed assertion leads anywhere). The library's call frame information
// has the bounds of its functions. Without it, as in musl, growthCalls returns all direct
// calls in the library, marked as nested: the allocator makes its calls inside a traced
// function.
func (c *code) growthCalls(functions []Function, wrappers map[uint64]*growthRow) []growthCall {
	var all []growthCall
	index := c.frames()
	if index == nil {
		for wrapper := range wrappers {
			returns, _ := site.InternalCallers(c.machine.Arch, c.text, c.base, wrapper)
			for _, next := range returns {
				all = append(all, growthCall{
					Branch: site.Branch{From: next - c.machine.Call, To: wrapper, Next: next, Call: true},
					nested: true, rest: c.between(next, next+site.Window),
				})
			}
		}
	} else {
		all = c.reached(index, functions, wrappers)
	}
	slices.SortFunc(all, func(a, b growthCall) int { return cmp.Compare(a.From, b.From) })
	return all
}

// frames returns the call frame information of the file, or nil if it lacks a traced
// function.
func (c *code) frames() *cfi.Index {
	index := c.allFrames()
	if index == nil {
		return nil
	}
	for addr := range c.byAddr {
		if _, ok := index.Find(addr); !ok {
			return nil
		}
	}
	return index
}

// reached returns the calls of wrappers that direct branches reach from the traced functions.
func (c *code) reached(index *cfi.Index, functions []Function, wrappers map[uint64]*growthRow) []growthCall {
	var all []growthCall
	seen := map[uint64]bool{} // starts of functions
	for _, name := range leavesAllocator {
		if sym, ok := c.lib.file.Defined(name); ok {
			seen[sym.Addr] = true
		}
	}
	var open []uint64
	for i := range functions {
		open = append(open, functions[i].addr)
	}
	// Before glibc 2.34 the allocator calls this function through a pointer.
	if sym, ok := c.lib.file.Defined("__default_morecore"); ok {
		open = append(open, sym.Addr)
	}
	for len(open) > 0 {
		addr := open[len(open)-1]
		open = open[:len(open)-1]
		fde, ok := index.Find(addr)
		if !ok || seen[fde.Start] {
			continue
		}
		seen[fde.Start] = true
		branches := site.Direct(c.machine.Arch, c.between(fde.Start, fde.End), fde.Start)
		for _, b := range branches {
			switch {
			case wrappers[b.To] == nil:
				open = append(open, b.To)
			case b.Call:
				all = append(all, growthCall{Branch: b, rest: c.between(b.Next, fde.End), branches: branches})
			}
		}
	}
	return all
}

// between returns the code at the addresses [from, to), as far as c.text has it; nil if from
// is outside.
func (c *code) between(from, to uint64) []byte {
	end := c.base + uint64(len(c.text))
	if to = min(to, end); from < c.base || from >= to {
		return nil
	}
	return c.text[from-c.base : to-c.base]
}
