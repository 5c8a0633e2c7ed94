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

// growthSearch looks for an allocator's calls for memory in its file.
type growthSearch struct {
	code      *code
	functions []Function            // the traced ones
	wrappers  map[uint64]*growthRow // the functions in growthModule, by address
}

// findGrowths finds the calls of the functions in growthModule that the allocator makes, and
// a site after each. It warns of calls that it cannot probe.
func findGrowths(c *code, functions []Function, warn func(format string, args ...any)) (found []Growth) {
	wrappers := map[uint64]*growthRow{}
	for i := range growthModule {
		r := &growthModule[i]
		if sym, ok := c.lib.file.Defined(r.symbol); ok && wrappers[sym.Addr] == nil {
			wrappers[sym.Addr] = r
		}
	}
	s := growthSearch{c, functions, wrappers}
	calls := s.calls()
	if len(calls) == 0 || len(calls) > maxGrowths {
		warn("heap growth is not recorded: %d calls in %s look like the allocator's", len(calls), c.lib.mapping.Path)
		return nil
	}
	for _, call := range calls {
		g, ok := s.choose(call)
		if !ok {
			warn("heap growth by the call of %s at %#x is not recorded: its result cannot be probed", wrappers[call.To].symbol, call.From)
			continue
		}
		found = append(found, g)
	}
	return found
}

// growthCall is a call in the allocator's code of a wrapper: a function in growthModule.
type growthCall struct {
	site.Branch
	nested   bool          // see Growth.Nested
	rest     []byte        // the code after the call, to the end of the function that calls
	branches []site.Branch // of that function
}

// choose finds a site for the result of a call.
func (s *growthSearch) choose(call growthCall) (Growth, bool) {
	c, r := s.code, s.wrappers[call.To]
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

// calls returns the allocator's calls of the wrappers, by their address in the file,
// ascending.
//
// The allocator is the code that direct branches reach from the traced functions, without
// the functions in leavesAllocator (a failed assertion leads anywhere). The library's call
// frame information has the bounds of its functions. If there is none, as in musl,
// calls returns all direct calls in the library, marked as nested: the allocator makes
// its calls inside a traced function.
func (s *growthSearch) calls() []growthCall {
	c := s.code
	var all []growthCall
	index := c.tracedFrames()
	if index == nil {
		for wrapper := range s.wrappers {
			returns, _ := c.direct.InternalCallers(wrapper)
			for _, next := range returns {
				all = append(all, growthCall{
					Branch: site.Branch{From: next - c.machine.Call, To: wrapper, Next: next, Call: true},
					nested: true, rest: c.text.between(next, next+site.Window),
				})
			}
		}
	} else {
		all = s.reached(index)
	}
	slices.SortFunc(all, func(a, b growthCall) int { return cmp.Compare(a.From, b.From) })
	return all
}

// reached returns the calls of wrappers that direct branches reach from the traced functions.
func (s *growthSearch) reached(index *cfi.Index) []growthCall {
	c := s.code
	var all []growthCall
	seen := map[uint64]bool{} // starts of functions
	for _, name := range leavesAllocator {
		if sym, ok := c.lib.file.Defined(name); ok {
			seen[sym.Addr] = true
		}
	}
	var open []uint64
	for i := range s.functions {
		open = append(open, s.functions[i].symbol.Addr)
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
		branches := site.Direct(c.machine.Arch, c.text.between(fde.Start, fde.End), fde.Start)
		for _, b := range branches {
			switch {
			case s.wrappers[b.To] == nil:
				open = append(open, b.To)
			case b.Call:
				all = append(all, growthCall{Branch: b, rest: c.text.between(b.Next, fde.End), branches: branches})
			}
		}
	}
	return all
}
