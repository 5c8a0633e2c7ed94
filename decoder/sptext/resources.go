package sptext

import (
	"slices"

	"rtrace-bpf/trace"
)

// resources is the types of resources that a trace has.
type resources struct {
	declared []trace.Resource
	guessed  bool // they are declared by the calls
}

// of returns the id of a call's resource. A call without a type belongs to the
// first resource, because writers leave out the type as long as there is only one.
func (r *resources) of(typ []byte, t *texts) uint32 {
	if typ == nil {
		if len(r.declared) == 0 {
			return 0
		}
		return r.declared[0].ID
	}
	name := t.text(typ)
	for i := range r.declared {
		if r.declared[i].Type == name {
			return r.declared[i].ID
		}
	}
	return 0
}

// has reports whether a type is declared.
func (r *resources) has(typ string) bool {
	return slices.ContainsFunc(r.declared, func(res trace.Resource) bool { return res.Type == typ })
}

// guess declares a type, if the trace has no declarations of its own and there is room.
func (r *resources) guess(typ string) (res trace.Resource, ok bool) {
	if len(r.declared) > 0 && !r.guessed || len(r.declared) >= 32 {
		return trace.Resource{}, false
	}
	r.guessed = true
	res = trace.Resource{ID: uint32(len(r.declared)) + 1, Type: typ}
	r.declared = append(r.declared, res)
	return res, true
}
