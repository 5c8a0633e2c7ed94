package mallinfo

import (
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
)

// The library's variables and their types.
const (
	arenaVariable, arenaType         = "main_arena", "malloc_state"
	parameterVariable, parameterType = "mp_", "malloc_par"
)

// layout holds the offsets of fields, in bytes from the start of their structure.
type layout struct {
	word uint64 // bytes of a pointer

	// In an arena. Each list of a size ends where the next field begins. Without fast bins both
	// ends are the same.
	fastBins, fastBinsEnd, top, bins, binsEnd, next, systemMem uint64
	// In the parameters.
	mmaps, mmappedMem uint64
}

// sizes returns how many bytes of an arena and of the parameters are read.
func (l *layout) sizes() (arena, parameters uint64) {
	return max(l.systemMem, l.next, l.binsEnd, l.top) + l.word, max(l.mmaps+countBytes, l.mmappedMem+l.word)
}

const (
	countBytes = 4       // of an int
	maxField   = 1 << 14 // bytes: structures of all versions so far end before 2^12
)

// sane reports whether the fields can have these offsets.
func (l *layout) sane() bool {
	for _, at := range []uint64{l.fastBins, l.fastBinsEnd, l.top, l.bins, l.binsEnd, l.next, l.systemMem, l.mmaps, l.mmappedMem} {
		if at > maxField {
			return false
		}
	}
	return l.fastBins <= l.fastBinsEnd && l.bins < l.binsEnd && (l.binsEnd-l.bins)%(2*l.word) == 0
}

// sizes are the sizes of the variables main_arena and mp_, in bytes.
type sizes struct{ arena, parameters uint64 }

// layouts holds the layouts of versions whose debugging information was examined: glibc 2.36
// for 64 bits, and for i386, where blocks are aligned to 16.
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

// maxDebug is the most bytes of debugging information that are read.
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

// describedLayout returns the layout from debugging information.
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
