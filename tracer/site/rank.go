package site

import "fmt"

// choice is a step that satisfies all conditions, with its properties for the ranking.
type choice struct {
	step     *step
	index    int
	places   []Place
	products int
}

// pick returns the best step of the path as a site, with a verdict on each of the others.
func pick(w *path, b *body, f *Function) (Site, error) {
	var best *choice
	candidates := make([]Candidate, len(w.steps))
	for i := range w.steps {
		st := &w.steps[i]
		candidates[i] = Candidate{Offset: st.offset, Cost: st.cost}
		c := &choice{step: st, index: i}
		if reason := c.reject(w.machine, b, f); reason != "" {
			candidates[i].Verdict = reason
			continue
		}
		if best == nil {
			best = c
			continue
		}
		worse, reason := c, best.beats(c)
		if reason == "" {
			worse, reason, best = best, c.beats(best), c
		}
		candidates[worse.index].Verdict = reason
	}
	if best == nil {
		if len(candidates) > 0 {
			return Site{}, fmt.Errorf("%w: entry is %s", ErrNoSite, candidates[0].Verdict)
		}
		return Site{}, fmt.Errorf("%w: entry cannot be decoded", ErrNoSite)
	}
	candidates[best.index].Verdict = "chosen"
	st := best.step
	return Site{
		Addr:         f.Entry + uint64(st.offset),
		Offset:       st.offset,
		Cost:         st.cost,
		Args:         best.places,
		StackAdjust:  st.state.stack,
		FrameChanged: st.state.frame,
		SkipsNull:    st.state.nonNull,
		Candidates:   candidates,
	}, nil
}

// reject returns why a step cannot be a site, or "" if it can.
func (c *choice) reject(m machine, b *body, f *Function) string {
	st := c.step
	if st.cost == Refused {
		return "refused by the kernel"
	}
	// Code that enters after the entry reaches the site without a call, or skips what the state
	// was computed from.
	if b.entered >= 0 && b.entered <= st.offset {
		return fmt.Sprintf("branch at %#x leads to +%d", b.from, b.entered)
	}
	var missing int
	c.places, c.products, missing = st.state.places(m, f)
	if missing >= 0 {
		return fmt.Sprintf("argument %d is overwritten", missing)
	}
	if st.state.linkSet {
		// The probe could not find its caller.
		return "link register has changed"
	}
	if !f.Return {
		return ""
	}
	// The kernel overwrites [rsp] with the address of its trampoline. On arm64 it overwrites the
	// link register. There, too, it compares stack pointers to find out which pending returns are
	// obsolete, and it compares the entry's with the callees'.
	if st.state.stack != 0 {
		return fmt.Sprintf("stack pointer has moved by %d, return probe impossible", st.state.stack)
	}
	if st.state.linkRead {
		return "return address may have been saved already, return probe impossible"
	}
	return ""
}

// beats returns in what way c is better than d, or "" if d is better. The rules, in the order of
// their weight:
//
//  1. The cheaper instruction, as it decides the price of every call.
//  2. An unchanged frame pointer, as stacks without unwind tables need it.
//  3. Not being hit by calls with a null pointer, where that is allowed.
//  4. Each argument by itself rather than a product.
//  5. The lower address.
func (c *choice) beats(d *choice) string {
	x, y := c.step, d.step
	switch {
	case x.cost != y.cost:
		return verdict(x.cost > y.cost, "%s costs less", c)
	case x.state.frame != y.state.frame:
		return verdict(y.state.frame, "%s has the caller's frame pointer", c)
	case x.state.nonNull != y.state.nonNull:
		return verdict(x.state.nonNull, "%s is not hit with null", c)
	case (c.products == 0) != (d.products == 0):
		return verdict(c.products == 0, "%s has all arguments", c)
	}
	return verdict(x.offset < y.offset, "%s comes first", c)
}

func verdict(better bool, format string, c *choice) string {
	if !better {
		return ""
	}
	return fmt.Sprintf(format, fmt.Sprintf("+%d", c.step.offset))
}
