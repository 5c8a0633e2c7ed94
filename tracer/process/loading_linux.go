package process

import (
	"slices"
)

// Defines says whether the file at m offers malloc and free to others. One that a
// new program has before the C library serves instead of that; the dynamic loader
// has a minimal one for itself, in older versions, which does not.
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

// Loading reports whether a process with these mappings is still being loaded: the
// kernel's library, which exec maps last, is not there, or there is a dynamic loader and
// no library with an allocator so far.
func (t *Target) Loading(all []Mapping) bool {
	loader, done := false, false
	for _, m := range all {
		done = done || m.Path == Vdso
		loader = loader || m.Inode != 0 && Rank(m, FileID{}) == rankLoader
	}
	return !done || loader && !slices.ContainsFunc(all, func(m Mapping) bool { return m.Inode != 0 && t.Defines(m) })
}
