package tracer

import "errors"

// relocate keeps the programs informed of where the allocators' code is: a new
// program has it elsewhere.
func (t *Tracer) relocate(m mapping, info fileInfo) {
	target, s := t.plan.target, &t.stream
	known := false
	for i := range target.texts {
		x := &target.texts[i]
		if m.id() != x.file {
			continue
		}
		known = true
		if moved := x.in(m, info); moved != x.code {
			x.code = moved
			t.err = errors.Join(t.err, t.kernel.registry.relocate(i, moved))
		}
	}
	switch {
	case known:
		s.stats.Unprobed = s.stranger
	case s.execed && s.stats.Unprobed && t.plan.options.choosesNothing() && target.defines(m):
		s.stranger = true
	}
}
