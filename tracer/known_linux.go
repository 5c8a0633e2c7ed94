package tracer

import (
	"fmt"
	"slices"

	"rtrace-bpf/internal/symbol"
)

// anyKnown stands in namedFile for all functions that modules know.
const anyKnown = -1

// module says whether the function is one that a module knows.
func (n *namedProbe) module() bool { return n.function != nil && n.function.Module != 0 }

// lookForKnown looks for the functions of modules in a file. Several of them may be one
// function, which has the name of the first then (decision 15). What the file does not
// have is no error, and what cannot be probed is said.
func (s *namedSearch) lookForKnown(lib *library) {
	s.found[namedFile{anyKnown, lib.id()}] = true
	if lib.file.Machine() != s.target.machine.elf {
		return
	}
	c := &code{lib: lib, machine: s.target.machine}
	taken := map[uint64]bool{}
	for i := range s.known {
		n := namedProbe{spec: anyKnown, function: &s.known[i]}
		sym, ok := lib.file.Exported(n.function.Symbol)
		if n.function.Owner != "" || lib.file.Alone() {
			sym, ok = lib.file.Defined(n.function.Symbol)
		}
		if !ok || taken[sym.Addr] || lib.file.IFunc(sym.Addr) {
			continue
		}
		taken[sym.Addr] = true
		if err := s.locateKnown(c, &n, sym); err != nil {
			s.unprobed = append(s.unprobed, fmt.Errorf("%s of %s is not traced: %w", sym.Name, lib.mapping.path, err))
			continue
		}
		s.probes = append(s.probes, n)
	}
}

// warn says which of the functions of modules are not traced. Those that the user has
// named should be somewhere; the others are where their libraries are.
func (s *namedSearch) warn(o *Options) {
	for _, err := range s.unprobed {
		o.warn("%v", err)
	}
	for i := range s.known {
		f := &s.known[i]
		if f.Owner != "" && !slices.ContainsFunc(s.probes, func(n namedProbe) bool { return n.function == f }) {
			o.warn("no file of process %d has the function %s of --resource %s so far: it is traced from when one is mapped that has", s.target.pid, f.Symbol, f.Owner)
		}
	}
}

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
