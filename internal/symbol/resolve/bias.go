package resolve

import "rtrace-bpf/trace"

// Bias returns the load bias of a mapping: what is added to the addresses of the file to
// get those in memory. ok is false if the file cannot be read or does not fit the mapping.
func (r *Resolver) Bias(m *trace.Mapping) (bias uint64, ok bool) {
	f := r.load(r.modules.mapped(m.Path))
	if f == nil {
		return 0, false
	}
	return place(m, f)
}
