package site

import "slices"

// resync is how many positions are tried as branches after code that could not be decoded: an
// instruction of x86 has at most 15 bytes.
const resync = 15

// body holds what the branches of a function show about it.
type body struct {
	entered int      // lowest offset > 0 that a branch leads to, or -1
	from    uint64   // address of that branch
	jumps   []uint64 // targets outside of the code, and the entry
	slots   []uint64 // slots from which targets outside of the code are read
}

// sweep decodes all of f in the order of addresses and collects its branches. Where decoding
// fails, it treats every byte that could start a branch as one. That can only cost a site, never
// make a wrong one.
func sweep(m machine, f *Function) *body {
	b := &body{entered: -1}
	guess := 0 // offsets below are also tried as branches
	for offset := 0; offset < len(f.Code); {
		pc := f.Entry + uint64(offset)
		code := f.Code[offset:]
		in := m.decode(code, pc)
		if in.size == 0 {
			guess = offset + resync
		}
		if in.size == 0 || offset < guess {
			for i := 0; i < max(in.size, m.step()) && i < len(code); i += m.step() {
				if kind, target, ok := m.branchAt(code[i:], pc+uint64(i)); ok {
					b.branch(f, kind, pc+uint64(i), target)
				}
			}
		}
		if in.direct {
			b.branch(f, in.kind, pc, in.target)
		}
		if in.slot != 0 && in.kind == leave {
			b.slots = append(b.slots, in.slot)
		}
		offset += max(in.size, m.step())
	}
	end := f.Entry + uint64(len(f.Code))
	for _, x := range f.Incoming {
		if x.From >= f.Entry && x.From < end {
			continue
		}
		if x.To > f.Entry && x.To < end {
			b.enter(int(x.To-f.Entry), x.From)
		}
	}
	return b
}

// branch records a branch of f's own code.
func (b *body) branch(f *Function, kind kind, from, target uint64) {
	offset := target - f.Entry
	switch {
	case offset != 0 && offset < uint64(len(f.Code)):
		b.enter(int(offset), from)
	case kind != call:
		b.jumps = append(b.jumps, target)
	}
}

func (b *body) enter(offset int, from uint64) {
	if b.entered < 0 || offset < b.entered {
		b.entered, b.from = offset, from
	}
}

// tailCalls returns the names of the probed functions that f jumps to, without repetitions, in
// the order of the jumps.
func (b *body) tailCalls(f *Function) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, target := range b.jumps {
		if target == f.Entry {
			add(f.Name)
		} else if f.Target != nil {
			if name, ok := f.Target(target); ok {
				add(name)
			}
		}
	}
	for _, slot := range b.slots {
		if f.Slot != nil {
			if name, ok := f.Slot(slot); ok {
				add(name)
			}
		}
	}
	return names
}

// Pointer is a jump or a call whose target is in a register or in memory.
type Pointer struct {
	From uint64 // address of the instruction
	Slot uint64 // address of the pointer that it reads; 0 if that is unknown
	Call bool
}

// Pointers returns the jumps and calls in code whose targets are not in the instruction, in the
// order of their addresses; code is as for [Direct].
func Pointers(arch Arch, code []byte, base uint64) []Pointer {
	_, pointers := Leads(arch, code, base)
	return pointers
}

// Leads returns the results of [Direct] and [Pointers], and decodes the code once for both.
func Leads(arch Arch, code []byte, base uint64) (branches []Branch, pointers []Pointer) {
	m, err := machineOf(Options{Arch: arch})
	if err != nil {
		return nil, nil
	}
	for i := 0; i < len(code); {
		pc := base + uint64(i)
		in := m.decode(code[i:], pc)
		if in.direct {
			branches = append(branches, Branch{From: pc, To: in.target, Next: pc + uint64(in.size), Call: in.kind == call})
		}
		if called := in.kind == call && !in.direct || in.kind == leave && in.calls; called || in.open {
			pointers = append(pointers, Pointer{From: pc, Slot: in.slot, Call: called})
		}
		i += max(in.size, m.step())
	}
	return branches, pointers
}
