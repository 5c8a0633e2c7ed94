package site

// Library holds the direct branches within a library's code, for those who look for several of
// them: reading all of the code takes some milliseconds for a large library.
type Library struct {
	arch Arch
	code []byte
	base uint64
	all  []Branch // to other code of the library, without those of scanShortX86; ascending by From
}

// NewLibrary reads the code of a library, at address base. The code must not change.
func NewLibrary(arch Arch, code []byte, base uint64) *Library {
	whole := &targets{entries: []uint64{base}, length: uint64(len(code)), low: base, all: uint64(len(code))}
	return &Library{arch: arch, code: code, base: base, all: scan(arch, code, base, whole)}
}

// Branches is [Branches] for the code of the library.
func (l *Library) Branches(entries []uint64) []Branch { return l.find(newTargets(entries, Window)) }

// InternalCallers is [InternalCallers] for the code of the library.
func (l *Library) InternalCallers(target uint64) (returns, jumps []uint64) {
	return callers(l.find(newTargets([]uint64{target}, 1)))
}

func (l *Library) find(t *targets) []Branch {
	if len(t.entries) == 0 {
		return nil
	}
	var found []Branch
	for _, b := range l.all {
		if t.covers(b.To) && t.has(b.To) {
			found = append(found, b)
		}
	}
	return short(l.arch, l.code, l.base, t, found)
}
