package plan

import (
	"fmt"
	"slices"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
)

// anyModuleFunction is the index in a searchedFile that stands for all functions of resource
// modules.
const anyModuleFunction = -1

// Module reports whether the function is one of a resource module.
func (n *FunctionProbe) Module() bool { return n.Function != nil && n.Function.Module != 0 }

// lookForModules searches a file for the functions of resource modules, and adds their
// probes to s.Probes. If several functions have the same address, the first gives the name
// (docs/design/decisions.md, 15). For a function that cannot be probed, it adds the reason
// to s.unprobed.
func (s *FunctionSearch) lookForModules(lib *library) {
	s.found[searchedFile{anyModuleFunction, lib.id()}] = true
	if lib.file.Machine() != s.target.Machine.ELF {
		return
	}
	c := unread(s.target.Machine, lib)
	here := s.moduleFunctionsIn(c)
	var entries []uint64
	for _, k := range here {
		if c.read(k.Addr) == nil {
			entries = append(entries, k.Addr)
		}
	}
	c.branches = slices.DeleteFunc(site.Branches(c.machine.Arch, c.text.bytes, c.text.base, entries), c.passes(here))
	for i := range here {
		k := &here[i]
		if err := s.locateModuleFunction(c, &k.probe, k.Symbol); err != nil {
			s.unprobed = append(s.unprobed, fmt.Errorf("%s of %s is not traced: %w", k.Name, lib.mapping.Path, err))
			continue
		}
		s.Probes = append(s.Probes, k.probe)
	}
}

// passes returns a function that reports whether a branch leaves one of the functions in all
// that may pass their calls on (functions.Function.Passed). The choice of sites ignores such
// branches.
func (c *code) passes(all []moduleFunction) func(site.Branch) bool {
	var from []process.Extent
	for i := range all {
		if all[i].probe.Function.Passed {
			if _, end, ok := c.bounds.around(all[i].Addr); ok {
				from = append(from, process.Extent{Start: all[i].Addr, End: end})
			}
		}
	}
	return func(b site.Branch) bool {
		return slices.ContainsFunc(from, func(e process.Extent) bool {
			return b.From >= e.Start && b.From < e.End && (b.To < e.Start || b.To >= e.End)
		})
	}
}

// moduleFunction is a function of a resource module in a file.
type moduleFunction struct {
	symbol.Symbol
	probe FunctionProbe
}

// moduleFunctionsIn returns the functions of s.modules that a file has, each address
// once. Of an IFUNC it returns all functions that it may select.
func (s *FunctionSearch) moduleFunctionsIn(c *code) (all []moduleFunction) {
	taken := map[uint64]bool{}
	for i := range s.modules {
		n := FunctionProbe{spec: anyModuleFunction, Function: &s.modules[i]}
		sym, ok := c.lib.file.Exported(n.Function.Symbol)
		if n.Function.Owner != "" || c.lib.file.Alone() {
			sym, ok = c.lib.file.Defined(n.Function.Symbol)
		}
		if !ok {
			continue
		}
		for _, sym := range c.selectable(sym) {
			if !taken[sym.Addr] {
				taken[sym.Addr] = true
				all = append(all, moduleFunction{sym, n})
			}
		}
	}
	return all
}

// selectable returns the functions from which an IFUNC selects one when the program starts,
// for the processor it runs on. Probes on those that are not selected cost nothing. If sym
// is no IFUNC, selectable returns sym alone.
func (c *code) selectable(sym symbol.Symbol) (all []symbol.Symbol) {
	if !c.lib.file.IFunc(sym.Addr) {
		return []symbol.Symbol{sym}
	}
	if c.read(sym.Addr) != nil {
		return nil
	}
	_, end, ok := c.bounds.around(sym.Addr)
	if !ok {
		return nil
	}
	for _, addr := range site.Selectable(c.sites(), c.text.between(sym.Addr, end), sym.Addr) {
		if start, end, ok := c.bounds.around(addr); ok && start == addr {
			all = append(all, symbol.Symbol{Name: sym.Name, Addr: addr, Size: end - addr})
		}
	}
	return all
}

// warn warns of module functions that are not traced: those that cannot be probed, and those
// of resources that the user defined and no file has. Other functions may be missing,
// because a process need not have their libraries.
func (s *FunctionSearch) warn(o *Options) {
	for _, err := range s.unprobed {
		o.Warnf("%v", err)
	}
	for i := range s.modules {
		f := &s.modules[i]
		if f.Owner != "" && !slices.ContainsFunc(s.Probes, func(n FunctionProbe) bool { return n.Function == f }) {
			o.Warnf("no file of process %d has the function %s of the resource %s so far: its calls are recorded once a file with it is mapped", s.target.PID, f.Symbol, f.Owner)
		}
	}
}

// locateModuleFunction sets the probes of the module function at sym.
func (s *FunctionSearch) locateModuleFunction(c *code, n *FunctionProbe, sym symbol.Symbol) error {
	if err := c.read(sym.Addr); err != nil {
		return err
	}
	_, end, known := c.bounds.around(sym.Addr)
	switch {
	case known:
	case sym.Size > 0:
		end = sym.Addr + sym.Size
	default:
		end = sym.Addr + 1
	}
	return s.enter(c, n, sym.Addr, end)
}
