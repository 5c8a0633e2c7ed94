package plan

// Covers reports whether a tracer that was opened with p traces all that o would trace. o is
// a plan for the same process after an exec. If p covers it, the tracer need not be
// replaced.
func (p *Plan) Covers(o *Plan) bool {
	if p.Options.Calls() || o.Options.Calls() { // traced functions may be in any file
		return false
	}
	if p.Target.PID != o.Target.PID || p.Target.Machine != o.Target.Machine || p.Target.AddressBits != o.Target.AddressBits ||
		p.Mechanisms.Attach != o.Mechanisms.Attach || p.Mechanisms.Bounded != o.Mechanisms.Bounded {
		return false
	}
	return p.Layout.covers(&o.Layout)
}
