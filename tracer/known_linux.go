package tracer

import (
	"fmt"
	"slices"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/site"
)

// anyKnown stands in namedFile for all functions that modules know.
const anyKnown = -1

// module says whether the function is one that a module knows.
func (n *namedProbe) module() bool { return n.function != nil && n.function.Module != 0 }

// lookForKnown looks for the functions of resource modules in a file. Where several of
// them have the same address, the first gives the name (docs/design/decisions.md, 15).
// A function that the file lacks is no error; one that cannot be probed goes to
// s.unprobed.
func (s *namedSearch) lookForKnown(lib *library) {
	s.found[namedFile{anyKnown, lib.id()}] = true
	if lib.file.Machine() != s.target.machine.elf {
		return
	}
	c := &code{lib: lib, machine: s.target.machine}
	here := s.knownIn(c)
	var entries []uint64
	for _, k := range here {
		if c.read(k.Addr) == nil {
			entries = append(entries, k.Addr)
		}
	}
	c.branches = slices.DeleteFunc(site.Branches(c.machine.arch, c.text, c.base, entries), c.passes(here))
	for i := range here {
		k := &here[i]
		if err := s.locateKnown(c, &k.probe, k.Symbol); err != nil {
			s.unprobed = append(s.unprobed, fmt.Errorf("%s of %s is not traced: %w", k.Name, lib.mapping.path, err))
			continue
		}
		s.probes = append(s.probes, k.probe)
	}
}

// passes returns what says whether a branch leads from one of those functions to another
// one, where that does no harm.
func (c *code) passes(all []knownHere) func(site.Branch) bool {
	var from []extent
	for i := range all {
		if all[i].probe.function.Passed {
			if _, end, ok := c.around(all[i].Addr); ok {
				from = append(from, extent{start: all[i].Addr, end: end})
			}
		}
	}
	return func(b site.Branch) bool {
		return slices.ContainsFunc(from, func(e extent) bool {
			return b.From >= e.start && b.From < e.end && (b.To < e.start || b.To >= e.end)
		})
	}
}

// knownHere is a function of a module in a file.
type knownHere struct {
	symbol.Symbol
	probe namedProbe
}

// knownIn returns those that a file has.
func (s *namedSearch) knownIn(c *code) (all []knownHere) {
	taken := map[uint64]bool{}
	for i := range s.known {
		n := namedProbe{spec: anyKnown, function: &s.known[i]}
		sym, ok := c.lib.file.Exported(n.function.Symbol)
		if n.function.Owner != "" || c.lib.file.Alone() {
			sym, ok = c.lib.file.Defined(n.function.Symbol)
		}
		if !ok {
			continue
		}
		for _, sym := range c.selectable(sym) {
			if !taken[sym.Addr] {
				taken[sym.Addr] = true
				all = append(all, knownHere{sym, n})
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
func (s *namedSearch) warn(o *Options) {
	for _, err := range s.unprobed {
		o.warnf("%v", err)
	}
	for i := range s.known {
		f := &s.known[i]
		if f.Owner != "" && !slices.ContainsFunc(s.probes, func(n namedProbe) bool { return n.function == f }) {
			o.warnf("no file of process %d has the function %s of the resource %s so far: it is traced from when a file with it is mapped", s.target.pid, f.Symbol, f.Owner)
		}
	}
}

// locateKnown finds where a function of a module is entered and left in a file.
func (s *namedSearch) locateKnown(c *code, n *namedProbe, sym symbol.Symbol) error {
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
