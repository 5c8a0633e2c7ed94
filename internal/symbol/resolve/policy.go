package resolve

import "slices"

// Policy says which frame of a stack is the caller of the call.
type Policy uint8

const (
	// Program takes the innermost frame of the program and its own libraries:
	// not of the C library, the dynamic loader, the C++ library or another
	// allocator's library, nor of what those put into other files: functions
	// of the namespace std, operator new and delete, an allocator that is
	// linked in. If nothing is left, it takes the innermost frame that is no
	// allocator's function.
	Program Policy = iota
	// Innermost takes the frame that the call returns to.
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
