package tracer

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
)

// maxLibraries bounds the files of a process that are looked at.
const maxLibraries = 4096

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
			return fileID{major: m.Major, minor: m.Minor, inode: m.Inode}
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
