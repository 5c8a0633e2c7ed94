package process

import (
	"slices"
)

// Defines reports whether the file at m has an allocator for the process: it exports malloc
// and free. The dynamic loader does not count: older ones export a minimal malloc for
// themselves.
func (t *Target) Defines(m Mapping) bool {
	if Rank(m, FileID{}) == rankLoader {
		return false
	}
	f, _, err := t.Open(m)
	if err != nil || f == nil {
		return false
	}
	_, malloc := f.Exported("malloc")
	_, free := f.Exported("free")
	return f.Close() == nil && malloc && free
}

// Loading reports whether a process with these mappings is still loading its program: the
// vDSO, which exec maps last, is missing, or there is a dynamic loader but no library with
// an allocator yet.
func (t *Target) Loading(all []Mapping) bool {
	loader, done := false, false
	for _, m := range all {
		done = done || m.Path == Vdso
		loader = loader || m.Inode != 0 && Rank(m, FileID{}) == rankLoader
	}
	return !done || loader && !slices.ContainsFunc(all, func(m Mapping) bool { return m.Inode != 0 && t.Defines(m) })
}
