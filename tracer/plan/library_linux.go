package plan

import (
	"cmp"
	"fmt"
	"slices"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/process"
)

// library is a mapped file that may define an allocator.
type library struct {
	mapping process.Mapping
	path    string // to open it by
	file    *symbol.File
	program bool              // it is the program that the process runs
	linked  bool              // the dynamic loader has it in its list
	guessed bool              // that list could not be read, so its place is by its name
	local   bool              // also functions that other files cannot call count
	given   map[string]uint64 // addresses that the user knows
}

// id tells the file apart.
func (l *library) id() process.FileID { return l.mapping.ID() }

// function finds a function by its name.
func (l *library) function(name string) (symbol.Symbol, bool) {
	if addr, ok := l.given[name]; ok {
		return symbol.Symbol{Name: name, Addr: addr, Size: l.sizeAt(addr)}, true
	}
	if l.local {
		return l.file.Defined(name)
	}
	return l.file.Exported(name)
}

// sizeAt returns the size of the function at addr, 0 if no symbol says it.
func (l *library) sizeAt(addr uint64) uint64 {
	if sym, ok := l.file.Lookup(addr); ok && sym.Addr == addr {
		return sym.Size
	}
	return 0
}

// openLibraries opens the files that the process has mapped as code, and are for its
// machine, in the order in which the dynamic loader looks for symbols; those that
// it does not know come last. visit says which of them stay open. The caller
// closes those.
func openLibraries(t *process.Target, visit func(l *library) (keep bool)) ([]*library, error) {
	maps, err := t.Mappings()
	if err != nil {
		return nil, err
	}
	order, program := t.LinkOrder()
	slices.SortStableFunc(maps, func(a, b process.Mapping) int {
		return cmp.Or(cmp.Compare(process.Place(order, a.ID()), process.Place(order, b.ID())), cmp.Compare(process.Rank(a, program), process.Rank(b, program)))
	})
	var kept []*library
	seen := map[process.FileID]bool{}
	for _, m := range maps {
		if m.Inode == 0 || seen[m.ID()] || len(seen) == process.MaxLibraries {
			continue
		}
		seen[m.ID()] = true
		f, path, err := t.Open(m)
		if err != nil || f == nil {
			continue // no ELF file: data that is mapped executable
		}
		l := &library{mapping: m, path: path, file: f, program: m.ID() == program, linked: len(order) == 0 || slices.Contains(order, m.ID())}
		l.guessed = len(order) == 0 && !l.program
		if f.Machine() == t.Machine.ELF && len(kept) < maxAllocators && visit(l) {
			kept = append(kept, l)
		} else if err := f.Close(); err != nil {
			return kept, fmt.Errorf("close %s: %w", path, err)
		}
	}
	return kept, nil
}
