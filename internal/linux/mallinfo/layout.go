package mallinfo

import (
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// The variables of the library, and what they are of.
const (
	arenaVariable, arenaType         = "main_arena", "malloc_state"
	parameterVariable, parameterType = "mp_", "malloc_par"
)

// layout is where fields are, in bytes from the start of what they are in.
type layout struct {
	word uint64 // bytes of a pointer

	// Of an arena. The lists of a size each end where the next field begins; without
	// fast bins both ends are the same.
	fastBins, fastBinsEnd, top, bins, binsEnd, next, systemMem uint64
	// Of the parameters.
	mmaps, mmappedMem uint64
}

// size returns how many bytes of an arena and of the parameters are read.
func (l *layout) sizes() (arena, parameters uint64) {
	return max(l.systemMem, l.next, l.binsEnd, l.top) + l.word, max(l.mmaps+countBytes, l.mmappedMem+l.word)
}

const (
	countBytes = 4       // of an int
	maxField   = 1 << 14 // bytes: those of versions so far end before 2^12
)

// sane says whether the fields can be where the layout says.
func (l *layout) sane() bool {
	for _, at := range []uint64{l.fastBins, l.fastBinsEnd, l.top, l.bins, l.binsEnd, l.next, l.systemMem, l.mmaps, l.mmappedMem} {
		if at > maxField {
			return false
		}
	}
	return l.fastBins <= l.fastBinsEnd && l.bins < l.binsEnd && (l.binsEnd-l.bins)%(2*l.word) == 0
}

// sizes are those of the variables main_arena and mp_, in bytes.
type sizes struct{ arena, parameters uint64 }

// layouts are those of versions whose debugging information was looked at: glibc 2.36
// of 64 bits, and of i386, where the alignment of blocks is 16.
var layouts = map[sizes]layout{
	{2200, 136}: {
		word: 8, fastBins: 16, fastBinsEnd: 96, top: 96, bins: 112, binsEnd: 2144, next: 2160, systemMem: 2184,
		mmaps: 60, mmappedMem: 80,
	},
	{1116, 76}: {
		word: 4, fastBins: 12, fastBinsEnd: 56, top: 56, bins: 64, binsEnd: 1080, next: 1096, systemMem: 1108,
		mmaps: 32, mmappedMem: 48,
	},
}

// maxDebug is how many bytes of debugging information are read.
const maxDebug = 128 << 20

// findLayout returns the layout of the variables of a file.
func findLayout(f *symbol.File, arena, parameters symbol.Object) (layout, bool) {
	l, ok := describedLayout(f)
	if !ok {
		l, ok = layouts[sizes{arena.Size, parameters.Size}]
	}
	if !ok || l.word != uint64(f.Class()/8) || !l.sane() {
		return layout{}, false
	}
	a, p := l.sizes()
	return l, a <= arena.Size && p <= parameters.Size
}

// describedLayout takes the layout from debugging information.
func describedLayout(f *symbol.File) (layout, bool) {
	info, err := lines.Read(f, maxDebug)
	if err != nil {
		return layout{}, false
	}
	all := lines.Structures(info, arenaType, parameterType)
	arena, parameters := all[arenaType], all[parameterType]
	ok := true
	field := func(of map[string]uint64, name string) uint64 {
		at, there := of[name]
		ok = ok && there
		return at
	}
	l := layout{
		word: uint64(f.Class() / 8), top: field(arena, "top"), bins: field(arena, "bins"), binsEnd: field(arena, "binmap"),
		next: field(arena, "next"), systemMem: field(arena, "system_mem"),
		mmaps: field(parameters, "n_mmaps"), mmappedMem: field(parameters, "mmapped_mem"),
	}
	if at, there := arena["fastbinsY"]; there {
		l.fastBins, l.fastBinsEnd = at, l.top
	}
	return l, ok
}
