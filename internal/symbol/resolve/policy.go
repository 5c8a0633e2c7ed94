package resolve

import (
	"slices"

	"rtrace-bpf/internal/wrapper"
)

// Policy selects the frame of a stack that is the caller of a call.
type Policy uint8

const (
	// Program selects the innermost frame that is not in the list of package wrapper. If no
	// frame remains, it selects the innermost one that is no function of an allocator.
	Program Policy = iota
	// Innermost selects the frame that the call returns to.
	Innermost
)

var policyNames = []string{"program", "innermost"}

// String returns the policy's name in lower case.
func (p Policy) String() string { return policyNames[p] }

// Policies returns the names of all policies.
func Policies() []string { return slices.Clone(policyNames) }

// ParsePolicy returns the policy with the given name.
func ParsePolicy(name string) (Policy, bool) {
	i := slices.Index(policyNames, name)
	return Policy(max(i, 0)), i >= 0
}

// Wrappers returns the list of frames that the policy skips.
func (p Policy) Wrappers() *wrapper.List {
	if p == Innermost {
		return wrapper.None
	}
	return new(wrapper.List)
}
