package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
)

// MaxLibraries is the most files of a process that are looked at.
const MaxLibraries = 4096

// Place returns the index of a file in order, or len(order) if it is not in there.
func Place(order []FileID, id FileID) int {
	if i := slices.Index(order, id); i >= 0 {
		return i
	}
	return len(order)
}

// rankLoader is the rank of dynamic loaders: older ones export a minimal malloc for
// themselves.
const rankLoader = 3

// Rank returns a number to sort files by that are not in the dynamic loader's list: the
// program first, then other libraries, the C library, and dynamic loaders last.
func Rank(m Mapping, program FileID) int {
	base := filepath.Base(m.Path)
	switch {
	case m.ID() == program:
		return 0
	case strings.HasPrefix(base, "libc.so"), strings.HasPrefix(base, "libc-"),
		strings.HasPrefix(base, "ld-musl-"), strings.HasPrefix(base, "libc.musl"):
		return 2
	case strings.HasPrefix(base, "ld-"), strings.HasPrefix(base, "ld."):
		return rankLoader
	}
	return 1
}

// LinkOrder returns the files in the order of the dynamic loader's list, in which it looks
// for symbols, and the file of the program. The order is empty if there is no loader, as in
// static programs, or if its list cannot be read. program is the zero value if it cannot be
// found.
func (t *Target) LinkOrder() (order []FileID, program FileID) {
	all, err := proc.Maps(t.PID)
	if err != nil {
		return nil, program
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.PID))
	if err != nil {
		return nil, program
	}
	defer memory.Close()
	if entry, err := proc.Entry(t.PID, int(t.Machine.Word)); err == nil {
		program = fileAt(all, entry)
	}
	links := t.links(memory, program)
	for _, link := range links {
		if id := fileAt(all, link.Dynamic); id.Inode != 0 && !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	if len(order) > 0 {
		program = order[0] // if the loader was started by hand, entry is in the loader
	}
	return order, program
}

// fileAt returns the file that is mapped at addr, or the zero value.
func fileAt(all []proc.Map, addr uint64) FileID {
	for i := range all {
		if m := &all[i]; addr >= m.Start && addr < m.End {
			return FileID{Major: m.Major, Minor: m.Minor, Inode: m.Inode}
		}
	}
	return FileID{}
}

// links reads the dynamic loader's list, which the dynamic section of the program points
// to. It tries the other files after program, because the kernel reports the loader as the
// program if that was started by hand.
func (t *Target) links(memory *os.File, program FileID) []proc.Link {
	maps, err := t.Mappings()
	if err != nil {
		return nil
	}
	slices.SortStableFunc(maps, func(a, b Mapping) int { return cmp.Compare(Rank(a, program), Rank(b, program)) })
	seen := map[FileID]bool{}
	for _, m := range maps {
		if m.Inode == 0 || seen[m.ID()] || len(seen) == MaxLibraries {
			continue
		}
		seen[m.ID()] = true
		f, _, err := t.Open(m)
		if err != nil || f == nil {
			continue
		}
		addr, size, ok := f.Dynamic()
		addr += m.Bias(f.Segments())
		_ = f.Close() // it was only read
		if !ok {
			continue
		}
		// After an error, the part of the list that was read is still valid.
		if links, _ := proc.Links(memory, int(t.Machine.Word), addr, size); len(links) > 0 {
			return links
		}
	}
	return nil
}
