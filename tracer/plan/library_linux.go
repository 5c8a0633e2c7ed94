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
	path    string // of the file, as this process can open it
	file    *symbol.File
	program bool              // it is the program that the process runs
	linked  bool              // it is in the dynamic loader's list, or there is no list
	guessed bool              // there is no list, so that its rank is by its name
	local   bool              // functions that other files cannot call count, too
	given   map[string]uint64 // addresses of functions that the user gave
}

// id returns the key of the file.
func (l *library) id() process.FileID { return l.mapping.ID() }

// function returns the function with a name, if it counts: see local and given.
func (l *library) function(name string) (symbol.Symbol, bool) {
	if addr, ok := l.given[name]; ok {
		return symbol.Symbol{Name: name, Addr: addr, Size: l.sizeAt(addr)}, true
	}
	if l.local {
		return l.file.Defined(name)
	}
	return l.file.Exported(name)
}

// sizeAt returns the bytes of the function at addr, or 0 if no symbol has that address.
func (l *library) sizeAt(addr uint64) uint64 {
	if sym, ok := l.file.Lookup(addr); ok && sym.Addr == addr {
		return sym.Size
	}
	return 0
}

// openLibraries opens the files for the process's machine that it has mapped as code, and
// calls visit with each. They come in the order in which the dynamic loader looks for
// symbols; files that are not in its list come last. It returns the files for which visit
// returns true, also with an error; the caller closes them.
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
			continue // not an ELF file: data that is mapped executable
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
