package plan

import (
	"fmt"
	"slices"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
)

// AnyModuleFunction stands in namedFile for all functions that modules know.
const AnyModuleFunction = -1

// Module says whether the function is one that a module knows.
func (n *FunctionProbe) Module() bool { return n.Function != nil && n.Function.Module != 0 }

// LookForModules looks for the functions of resource modules in a file. Where several of
// them have the same address, the first gives the name (docs/design/decisions.md, 15).
// A function that the file lacks is no error; one that cannot be probed goes to
// s.unprobed.
func (s *FunctionSearch) LookForModules(lib *library) {
	s.found[SearchedFile{AnyModuleFunction, lib.id()}] = true
	if lib.file.Machine() != s.target.Machine.ELF {
		return
	}
	c := &code{lib: lib, machine: s.target.Machine}
	here := s.ModuleFunctionsIn(c)
	var entries []uint64
	for _, k := range here {
		if c.read(k.Addr) == nil {
			entries = append(entries, k.Addr)
		}
	}
	c.branches = slices.DeleteFunc(site.Branches(c.machine.Arch, c.text, c.base, entries), c.passes(here))
	for i := range here {
		k := &here[i]
		if err := s.LocateModuleFunction(c, &k.probe, k.Symbol); err != nil {
			s.unprobed = append(s.unprobed, fmt.Errorf("%s of %s is not traced: %w", k.Name, lib.mapping.Path, err))
			continue
		}
		s.Probes = append(s.Probes, k.probe)
	}
}

// passes returns what says whether a branch leads from one of those functions to another
// one, where that does no harm.
func (c *code) passes(all []ModuleFunction) func(site.Branch) bool {
	var from []process.Extent
	for i := range all {
		if all[i].probe.Function.Passed {
			if _, end, ok := c.around(all[i].Addr); ok {
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

// ModuleFunction is a function of a module in a file.
type ModuleFunction struct {
	symbol.Symbol
	probe FunctionProbe
}

// ModuleFunctionsIn returns those that a file has.
func (s *FunctionSearch) ModuleFunctionsIn(c *code) (all []ModuleFunction) {
	taken := map[uint64]bool{}
	for i := range s.ModuleFunctions {
		n := FunctionProbe{spec: AnyModuleFunction, Function: &s.ModuleFunctions[i]}
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
				all = append(all, ModuleFunction{sym, n})
			}
		}
	}
	return all
}

// selectable returns the functions of which an IFUNC selects one when the program
// starts, by the processor: all of them, since those that are not selected cost nothing.
// Another symbol is the function itself.
func (c *code) selectable(sym symbol.Symbol) (all []symbol.Symbol) {
	if !c.lib.file.IFunc(sym.Addr) {
		return []symbol.Symbol{sym}
	}
	if c.read(sym.Addr) != nil {
		return nil
	}
	_, end, ok := c.around(sym.Addr)
	if !ok {
		return nil
	}
	for _, addr := range site.Selectable(c.sites(), c.between(sym.Addr, end), sym.Addr) {
		if start, end, ok := c.around(addr); ok && start == addr {
			all = append(all, symbol.Symbol{Name: sym.Name, Addr: addr, Size: end - addr})
		}
	}
	return all
}

// warn says which of the functions of modules are not traced. Those that the user has
// named should be somewhere; the others are where their libraries are.
func (s *FunctionSearch) warn(o *Options) {
	for _, err := range s.unprobed {
		o.Warnf("%v", err)
	}
	for i := range s.ModuleFunctions {
		f := &s.ModuleFunctions[i]
		if f.Owner != "" && !slices.ContainsFunc(s.Probes, func(n FunctionProbe) bool { return n.Function == f }) {
			o.Warnf("no file of process %d has the function %s of the resource %s so far: it is traced from when a file with it is mapped", s.target.PID, f.Symbol, f.Owner)
		}
	}
}

// LocateModuleFunction finds where a function of a module is entered and left in a file.
func (s *FunctionSearch) LocateModuleFunction(c *code, n *FunctionProbe, sym symbol.Symbol) error {
	if err := c.read(sym.Addr); err != nil {
		return err
	}
	_, end, known := c.around(sym.Addr)
	switch {
	case known:
	case sym.Size > 0:
		end = sym.Addr + sym.Size
	default:
		end = sym.Addr + 1
	}
	return s.enter(c, n, sym.Addr, end)
}
