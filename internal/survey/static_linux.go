package survey

import (
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
)

// bss takes the parts of anonymous mappings that are data of the program and of libraries: what
// a file has in memory beyond its end. It returns the writable data of each file, with these
// parts.
func (s *space) bss(pid int, to *ledger, id *identity) map[inode][]extent {
	data := map[inode][]extent{}
	base := map[inode]*area{} // the first mapping of each file
	for i := range s.areas {
		a := &s.areas[i]
		if !a.File() {
			continue
		}
		key := inodeOf(&a.Map)
		if base[key] == nil || a.Offset == 0 {
			base[key] = a
		}
		if !a.writable() || !id.code[key] && key != id.exe {
			continue
		}
		data[key] = append(data[key], extent{a.Start, a.End})
		if i+1 == len(s.areas) {
			continue
		}
		next := &s.areas[i+1]
		if next.Start != a.End || !next.anonymous() || !next.writable() {
			continue
		}
		end := min(s.endOf(pid, base[key]), next.End)
		if end <= next.Start {
			continue
		}
		data[key] = append(data[key], extent{next.Start, end})
		l, part := id.labelOf(a)
		s.take(next.Start, end)
		to.add(l, part, amount{resident: s.Resident(next.Start, end), size: end - next.Start})
	}
	return data
}

// endOf returns where the memory of a file ends that was loaded with its first mapping at a, or
// 0. It reads the headers from the file.
func (s *space) endOf(pid int, a *area) uint64 {
	if a == nil || a.Offset != 0 {
		return 0
	}
	f, err := symbol.Open(proc.Path(pid, a.Map))
	if err != nil {
		return 0
	}
	defer f.Close()
	first, _, ok := f.Base()
	if !ok {
		return 0
	}
	return (a.Start - first&^(s.page-1) + f.End() + s.page - 1) &^ (s.page - 1)
}
