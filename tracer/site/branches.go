package site

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Branch is a direct branch from one address to another.
type Branch struct {
	From uint64 // address of the instruction
	To   uint64
	Next uint64 // address after the instruction, where a call returns to
	Call bool   // a call, as opposed to a jump
}

// Branches returns the direct branches in code, which is at address base, whose target is one of
// the entries or less than [Window] bytes after one, in the order of From. It reads the whole
// code of a library once for all of its functions.
//
// It is not known where instructions start on x86, so each byte is treated as the start of a
// branch with a displacement of four bytes. A wrong branch is as unlikely as it is that four
// random bytes point into a window. Branches with a displacement of one byte would be found
// everywhere in that way. They are searched only around the entries, in decoded instructions.
// Compiled functions have none that lead out of them; in a C library written by hand, some lead
// into the next function (mempcpy into memcpy).
func Branches(arch Arch, code []byte, base uint64, entries []uint64) []Branch {
	return find(arch, code, base, newTargets(entries, Window))
}

// InternalCallers returns the return addresses of the direct calls of target in code, and the
// addresses of the direct jumps to it. code is the code of the library that contains target, at
// address base. So the library itself makes these calls, and they cannot be replaced by another
// library, unlike calls through the PLT. It finds branches as [Branches] does.
func InternalCallers(arch Arch, code []byte, base, target uint64) (returns, jumps []uint64) {
	return callers(find(arch, code, base, newTargets([]uint64{target}, 1)))
}

// callers divides branches as [InternalCallers] does.
func callers(all []Branch) (returns, jumps []uint64) {
	for _, b := range all {
		if b.Call {
			returns = append(returns, b.Next)
		} else {
			jumps = append(jumps, b.From)
		}
	}
	return returns, jumps
}

func find(arch Arch, code []byte, base uint64, t *targets) []Branch {
	if len(t.entries) == 0 {
		return nil
	}
	return short(arch, code, base, t, scan(arch, code, base, t))
}

// scan finds the branches that lead to t, without those of [scanShortX86].
func scan(arch Arch, code []byte, base uint64, t *targets) []Branch {
	switch arch {
	case AMD64, I386:
		m, _ := machineOf(Options{Arch: arch})
		return scanX86(m.(x86), code, base, t)
	case ARM64:
		return scanARM64(code, base, t)
	}
	return nil
}

// short appends the branches that scan leaves out to found.
func short(arch Arch, code []byte, base uint64, t *targets, found []Branch) []Branch {
	if arch != AMD64 && arch != I386 {
		return found
	}
	m, _ := machineOf(Options{Arch: arch})
	return scanShortX86(m.(x86), code, base, t, found)
}

// targets is a set of equally long address ranges.
type targets struct {
	entries  []uint64 // ascending
	length   uint64
	low, all uint64 // first address, and length of the range that covers all ranges
}

func newTargets(entries []uint64, length uint64) *targets {
	t := &targets{entries: slices.Clone(entries), length: length}
	slices.Sort(t.entries)
	if n := len(t.entries); n > 0 {
		t.low = t.entries[0]
		t.all = t.entries[n-1] - t.low + length
	}
	return t
}

// covers is a fast check that comes first.
func (t *targets) covers(addr uint64) bool { return addr-t.low < t.all }

func (t *targets) has(addr uint64) bool {
	i, exact := slices.BinarySearch(t.entries, addr)
	return exact || i > 0 && addr-t.entries[i-1] < t.length
}

func scanX86(m x86, code []byte, base uint64, t *targets) []Branch {
	var found []Branch
	if t.length >= uint64(len(code)) {
		found = make([]Branch, 0, len(code)/32) // all of the code's branches
	}
	for i := 0; i+5 <= len(code); i++ {
		c := code[i]
		at := i + 1
		switch {
		case c&0xfe == 0xe8:
		case c == 0x0f && code[i+1]&0xf0 == 0x80 && i+6 <= len(code):
			at = i + 2
		default:
			continue
		}
		next := base + uint64(at) + 4
		to := m.addr(next + uint64(int64(int32(binary.LittleEndian.Uint32(code[at:])))))
		if t.covers(to) && t.has(to) {
			found = append(found, Branch{From: base + uint64(i), To: to, Next: next, Call: c == 0xe8})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// shortReach is the largest distance to a target of a branch with a displacement of one byte.
const shortReach = 130

// scanShortX86 appends the branches that scanX86 leaves out to found.
func scanShortX86(m x86, code []byte, base uint64, t *targets, found []Branch) []Branch {
	end := 0 // end of what was decoded
	for _, entry := range t.entries {
		if entry < base || entry >= base+uint64(len(code)) {
			continue
		}
		at := int(entry - base)
		limit := min(at+int(t.length)+shortReach, len(code))
		i := end
		if at > end {
			i = startBefore(m, code, base, at, max(end, at-shortReach))
		}
		for i < limit {
			pc := base + uint64(i)
			in := m.decode(code[i:], pc)
			if _, _, near := m.nearBranch(code[i:], pc); in.direct && !near && t.has(in.target) {
				found = append(found, Branch{From: pc, To: in.target, Next: pc + uint64(in.size)})
			}
			i += max(in.size, 1)
		}
		end = max(end, i)
	}
	slices.SortFunc(found, func(a, b Branch) int { return cmp.Compare(a.From, b.From) })
	return found
}

// startBefore returns the offset of an instruction that is as close after from as possible, given
// that one starts at the later offset at. Decoding from an arbitrary offset soon falls into step
// with the instructions, so it starts well before.
func startBefore(m x86, code []byte, base uint64, at, from int) int {
	const run = 96
	for back := range resync {
		first := -1
		i := max(from-run-back, 0)
		for i < at {
			if i >= from && first < 0 {
				first = i
			}
			i += max(m.decode(code[i:], base+uint64(i)).size, 1)
		}
		if i == at && first >= 0 {
			return first
		}
	}
	return at
}

func scanARM64(code []byte, base uint64, t *targets) []Branch {
	var found []Branch
	// Instructions are aligned even if the section is not.
	for i := int(-base & 3); i+4 <= len(code); i += 4 {
		pc := base + uint64(i)
		kind, to, ok := branchARM64(binary.LittleEndian.Uint32(code[i:]), pc)
		if ok && t.covers(to) && t.has(to) {
			found = append(found, Branch{From: pc, To: to, Next: pc + 4, Call: kind == call})
		}
	}
	return found
}

// Direct returns the direct branches in code, which is at address base, in the order of From.
// Unlike for [Branches], code must start with an instruction, as a function does: Direct decodes
// one after the other. It skips what it cannot decode.
func Direct(arch Arch, code []byte, base uint64) []Branch {
	branches, _ := Leads(arch, code, base)
	return branches
}

// Open reports whether code, as for [Direct], has jumps whose targets are not in the instruction
// but in a register or in memory.
func Open(arch Arch, code []byte, base uint64) bool {
	m, err := machineOf(Options{Arch: arch})
	if err != nil {
		return false
	}
	for i := 0; i < len(code); {
		in := m.decode(code[i:], base+uint64(i))
		if in.open {
			return true
		}
		i += max(in.size, m.step())
	}
	return false
}
