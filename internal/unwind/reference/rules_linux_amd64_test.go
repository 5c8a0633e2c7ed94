package reference

import "rtrace-bpf/internal/unwind"

// walker unwinds with the rules of tables alone, like the program in the kernel: it follows pc,
// stack pointer and frame pointer.
type walker struct {
	*process
	m     *machine
	regs  Registers // of the first frame, or of the one that a signal interrupted
	exact bool      // the pc is the next instruction
}

// walk returns the stack as far as rules lead, and whether it is complete.
func (p *process) walk(regs Registers, m *machine) (frames []uint64, whole bool) {
	w := walker{process: p, m: m, regs: regs, exact: true}
	for len(frames) < 512 {
		frames = append(frames, w.regs.R[m.pc])
		next, end := w.step()
		if !next {
			return frames, end
		}
	}
	return frames, false
}

// step moves to the caller. next is false if no rule leads there; end reports that there is no
// caller.
func (w *walker) step() (next, end bool) {
	lookup := w.regs.R[w.m.pc]
	if !w.exact {
		lookup--
	}
	module, ok := w.Find(lookup)
	table := w.tables[module.Index]
	if !ok || table == nil {
		return false, false
	}
	rule := table.Find(lookup - module.Bias).Frame(table.Word)
	switch rule.Kind {
	case unwind.Signal:
		return w.leave(&w.m.restorers[0]), false
	case unwind.SignalOld:
		return w.leave(&w.m.restorers[1]), false
	case unwind.End:
		return false, true
	}
	cfa, ok := w.cfa(&rule)
	return ok && w.call(&rule, cfa), false
}

// leave restores the interrupted registers from a signal frame.
func (w *walker) leave(r *restorer) bool {
	sp := w.regs.R[w.m.sp]
	for n := range w.m.pc + 1 {
		v, ok := w.word(sp + r.saved(n))
		if !ok {
			return false
		}
		w.regs.Set(n, v)
	}
	w.exact = true
	return true
}

// cfa returns the canonical frame address.
func (w *walker) cfa(rule *unwind.Frame) (uint64, bool) {
	sp, fp := w.regs.R[w.m.sp], w.regs.R[w.m.fp]
	switch rule.Kind {
	case unwind.SP:
		return sp + uint64(rule.CFA), true
	case unwind.FP:
		_, ok := w.regs.Get(w.m.fp)
		return fp + uint64(rule.CFA), ok
	case unwind.SPDeref:
		v, ok := w.word(sp + uint64(rule.Offset))
		return v + uint64(rule.Addend), ok
	case unwind.FPDeref:
		v, ok := w.word(fp + uint64(rule.Offset))
		return v + uint64(rule.Addend), ok
	case unwind.PLT:
		pushed := uint64(1)
		if w.regs.R[w.m.pc]&15 >= uint64(rule.Slot) {
			pushed = 2
		}
		return sp + pushed*uint64(w.m.word), true
	case unwind.Reg:
		v, ok := w.regs.Get(uint64(rule.Register))
		return v + uint64(rule.CFA), ok && w.exact
	}
	return 0, false
}

// call undoes the call whose frame ends at cfa.
func (w *walker) call(rule *unwind.Frame, cfa uint64) bool {
	pc, ok := w.word(cfa - uint64(w.m.word))
	if !ok {
		return false
	}
	fp, known := w.regs.Get(w.m.fp)
	switch rule.FP {
	case unwind.FPAtCFA:
		fp, known = w.word(cfa + uint64(rule.Slot))
	case unwind.FPAtFP:
		fp, known = w.word(fp + uint64(rule.Slot))
	case unwind.FPUnknown:
		known = false
	}
	w.regs = Registers{}
	w.regs.Set(w.m.pc, pc)
	w.regs.Set(w.m.sp, w.m.wrap(cfa))
	if known {
		w.regs.Set(w.m.fp, fp)
	}
	w.exact = false
	return true
}

func (w *walker) word(addr uint64) (uint64, bool) {
	return narrow(w.process, w.m.wrap(addr), w.m.word)
}
