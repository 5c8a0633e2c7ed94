package plan

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/tracer/site"
)

// Growth is a call by which the allocator gets memory from the system. It is
// probed where it is made, so that the same system calls cost nothing where the
// program makes them.
type Growth struct {
	Function string    // sbrk, mmap …
	Call     Probe     // the call
	Result   Probe     // behind it
	Site     site.Site // of Result

	// Nested says that it is not known who gets here: the call counts while the
	// thread is inside a traced function.
	Nested bool

	addr uint64 // of the call, in the file
}

// maxGrowths bounds the calls that are probed; glibc has a dozen.
const maxGrowths = 64

// chooseGrowths finds the allocator's calls of the functions in growthModule and
// a site behind each.
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
		p.Options.Warnf("growth of the heap is not recorded: %d calls in %s look like the allocator's", len(calls), c.lib.mapping.Path)
		return
	}
	for _, call := range calls {
		g, ok := p.chooseGrowth(c, call, wrappers[call.To])
		if !ok {
			p.Options.Warnf("growth of the heap by %s at %#x is not recorded: the result cannot be probed", wrappers[call.To].symbol, call.From)
			continue
		}
		p.growths = append(p.growths, g)
	}
}

// growthCall is a call of a wrapper in the allocator.
type growthCall struct {
	site.Branch
	nested   bool          // see Growth
	rest     []byte        // code behind the call, of the same function
	branches []site.Branch // of that function
}

// chooseGrowth finds a site for the result of a call.
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

// growthCalls returns the calls of the wrappers that the allocator makes, by
// address.
//
// The allocator is what can be reached from the traced functions by direct
// branches, without what the library exports for other purposes (an assertion
// that fails leads anywhere). Functions are told apart by the library's call
// frame information. Without any, as in musl, all direct calls of the library
// are returned: those that the allocator makes are made inside a traced
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

// frames lists the functions of the library, nil if it does not say where the
// traced ones are.
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

// reached follows direct branches from the traced functions.
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
	// Before glibc 2.34 it is called through a pointer.
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

// between returns the code from one address to another, as far as it is there.
func (c *code) between(from, to uint64) []byte {
	end := c.base + uint64(len(c.text))
	if to = min(to, end); from < c.base || from >= to {
		return nil
	}
	return c.text[from-c.base : to-c.base]
}
