package resolve

import (
	"cmp"
	"errors"
	"slices"

	"rtrace-bpf/internal/wrapper"
)

// Nameless is a file in which addresses have no names.
type Nameless struct {
	Path      string // empty for code that the process generated
	Addresses int    // how many were looked up; each may count several times
	Err       error  // why the file was not used; nil if it has no symbols for the addresses
}

// ErrUnmapped reports that nothing is known to be mapped at an address.
var ErrUnmapped = errors.New("nothing is mapped there")

// Nameless returns the files in which addresses that were looked up have no names, those with the
// most first. It leaves out the libraries of C, C++ and allocators.
func (r *Resolver) Nameless() []Nameless {
	var all []Nameless
	for _, m := range r.modules.all {
		if m.unnamed > 0 && !wrapper.IsRuntime(m.path) && m.path != vdsoName && m.path != vsyscallName {
			all = append(all, Nameless{m.path, m.unnamed, m.err})
		}
	}
	switch {
	case r.generated > 0:
		all = append(all, Nameless{Addresses: r.generated + r.unmapped})
	case r.unmapped > 0:
		all = append(all, Nameless{Addresses: r.unmapped, Err: ErrUnmapped})
	}
	slices.SortFunc(all, func(a, b Nameless) int {
		return cmp.Or(cmp.Compare(b.Addresses, a.Addresses), cmp.Compare(a.Path, b.Path))
	})
	return all
}
