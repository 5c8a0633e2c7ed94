package sptext

import (
	"slices"

	"rtrace-bpf/trace"
)

// resources is the types of resources that a trace declares.
type resources struct {
	declared []declared
}

// declared is a declared resource.
type declared struct {
	trace.Resource
	text []byte // "<type>", quoted
}

// has reports whether a resource was declared with the same words.
func (x *resources) has(r *trace.Resource) bool {
	return slices.ContainsFunc(x.declared, func(d declared) bool { return d.Resource == *r })
}

// text returns the text to print after the function's name. Calls print their type if there
// is more than one.
func (x *resources) text(id uint32) []byte {
	if len(x.declared) < 2 {
		return nil
	}
	// The last declaration of an id counts.
	for _, r := range slices.Backward(x.declared) {
		if r.ID == id {
			return r.text
		}
	}
	return nil
}
