package userland

import "slices"

// Lacks returns the programs that a guest with the named parts does not get.
func Lacks(names []string) []string {
	var out []string
	for _, p := range parts {
		if !slices.Contains(names, p.name) {
			out = append(out, p.programs...)
		}
	}
	return out
}
