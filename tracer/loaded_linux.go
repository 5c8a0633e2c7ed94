package tracer

import (
	"slices"
)

// defines says whether the file at m offers malloc and free to others. One that a
// new program has before the C library serves instead of that; the dynamic loader
// has a minimal one for itself, in older versions, which does not.
func (t *target) defines(m mapping) bool {
	if rank(m, fileID{}) == rankLoader {
		return false
	}
	f, _, err := t.open(m)
	if err != nil || f == nil {
		return false
	}
	_, malloc := f.Exported("malloc")
	_, free := f.Exported("free")
	return f.Close() == nil && malloc && free
}

// loading reports whether a process with these mappings is still being loaded: the
// kernel's library, which exec maps last, is not there, or there is a dynamic loader and
// no library with an allocator so far.
func (t *target) loading(all []mapping) bool {
	loader, done := false, false
	for _, m := range all {
		done = done || m.path == vdso
		loader = loader || m.inode != 0 && rank(m, fileID{}) == rankLoader
	}
	return !done || loader && !slices.ContainsFunc(all, func(m mapping) bool { return m.inode != 0 && t.defines(m) })
}
