package tracer

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
)

// maxLibraries bounds the files of a process that are looked at.
const maxLibraries = 4096

// library is a mapped file that may define an allocator.
type library struct {
	mapping mapping
	path    string // to open it by
	file    *symbol.File
	program bool              // it is the program that the process runs
	linked  bool              // the dynamic loader has it in its list
	guessed bool              // that list could not be read, so its place is by its name
	local   bool              // also functions that other files cannot call count
	given   map[string]uint64 // addresses that the user knows
}

// id tells the file apart.
func (l *library) id() fileID { return l.mapping.id() }

func (m mapping) id() fileID { return fileID{m.major, m.minor, m.inode} }

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

// libraries opens the files that the process has mapped as code, and are for its
// machine, in the order in which the dynamic loader looks for symbols; those that
// it does not know come last. visit says which of them stay open. The caller
// closes those.
func (t *target) libraries(visit func(l *library) (keep bool)) ([]*library, error) {
	maps, err := t.mappings()
	if err != nil {
		return nil, err
	}
	order, program := t.linkOrder()
	slices.SortStableFunc(maps, func(a, b mapping) int {
		return cmp.Or(cmp.Compare(place(order, a.id()), place(order, b.id())), cmp.Compare(rank(a, program), rank(b, program)))
	})
	var kept []*library
	seen := map[fileID]bool{}
	for _, m := range maps {
		if m.inode == 0 || seen[m.id()] || len(seen) == maxLibraries {
			continue
		}
		seen[m.id()] = true
		f, path, err := t.open(m)
		if err != nil || f == nil {
			continue // no ELF file: data that is mapped executable
		}
		l := &library{mapping: m, path: path, file: f, program: m.id() == program, linked: len(order) == 0 || slices.Contains(order, m.id())}
		l.guessed = len(order) == 0 && !l.program
		if f.Machine() == t.machine.elf && len(kept) < maxAllocators && visit(l) {
			kept = append(kept, l)
		} else if err := f.Close(); err != nil {
			return kept, fmt.Errorf("close %s: %w", path, err)
		}
	}
	return kept, nil
}

// place returns where a file is in an order, behind all others if it is not.
func place(order []fileID, id fileID) int {
	if i := slices.Index(order, id); i >= 0 {
		return i
	}
	return len(order)
}

// rankLoader is the rank of dynamic loaders: older ones export a minimal malloc for
// themselves.
const rankLoader = 3

// rank orders files of which the dynamic loader says nothing.
func rank(m mapping, program fileID) int {
	base := filepath.Base(m.path)
	switch {
	case m.id() == program:
		return 0
	case strings.HasPrefix(base, "libc.so"), strings.HasPrefix(base, "libc-"),
		strings.HasPrefix(base, "ld-musl-"), strings.HasPrefix(base, "libc.musl"):
		return 2
	case strings.HasPrefix(base, "ld-"), strings.HasPrefix(base, "ld."):
		return rankLoader
	}
	return 1
}

// linkOrder returns the files in the order of the dynamic loader's list, and which
// of all is the program. The order is empty where there is no loader, as in static
// programs, or its list cannot be read; program is the zero value if nothing says
// it.
func (t *target) linkOrder() (order []fileID, program fileID) {
	all, err := proc.Maps(t.pid)
	if err != nil {
		return nil, program
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err != nil {
		return nil, program
	}
	defer memory.Close()
	if entry, err := proc.Entry(t.pid, int(t.machine.word)); err == nil {
		program = fileAt(all, entry)
	}
	links := t.links(memory, program)
	for _, link := range links {
		if id := fileAt(all, link.Dynamic); id.inode != 0 && !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	if len(order) > 0 {
		program = order[0] // the loader may have been started by hand
	}
	return order, program
}

// fileAt returns the file that is mapped at addr.
func fileAt(all []proc.Map, addr uint64) fileID {
	for i := range all {
		if m := &all[i]; addr >= m.Start && addr < m.End {
			return fileID{m.Major, m.Minor, m.Inode}
		}
	}
	return fileID{}
}

// links reads the dynamic loader's list. The program leads to it, which is not
// what the kernel takes for it where the loader was started by hand.
func (t *target) links(memory *os.File, program fileID) []proc.Link {
	maps, err := t.mappings()
	if err != nil {
		return nil
	}
	slices.SortStableFunc(maps, func(a, b mapping) int { return cmp.Compare(rank(a, program), rank(b, program)) })
	seen := map[fileID]bool{}
	for _, m := range maps {
		if m.inode == 0 || seen[m.id()] || len(seen) == maxLibraries {
			continue
		}
		seen[m.id()] = true
		f, _, err := t.open(m)
		if err != nil || f == nil {
			continue
		}
		addr, size, ok := f.Dynamic()
		addr += m.bias(f.Segments())
		_ = f.Close() // it was only read
		if !ok {
			continue
		}
		// What was read before the list broke off is as right as the rest would be.
		if links, _ := proc.Links(memory, int(t.machine.word), addr, size); len(links) > 0 {
			return links
		}
	}
	return nil
}
