package unwind

import (
	"slices"

	"rtrace-bpf/internal/symbol"
)

// entryBytes is the most bytes of code that are marked at the entry point of a file. glibc's
// loader for x86-64 has 61 bytes, which end with the jump to the program.
const entryBytes = 64

// findEntry marks the code at the entry point of the dynamic loader or of a static program as
// outermost, unless an FDE covers it, because nothing called that code. Constructors of
// libraries are called from the loader's entry code. The entry code of other programs has an
// FDE, or marks itself as outermost with a frame pointer of zero.
func (b *builder) findEntry(code []symbol.Segment) {
	entry := b.file.Entry()
	end, ok := within(code, entry)
	if entry == 0 || !ok || len(b.functions) == 0 || !b.file.Alone() {
		return
	}
	i, _ := slices.BinarySearchFunc(b.functions, entry, func(f function, addr uint64) int {
		if f.start <= addr {
			return -1
		}
		return 1
	})
	if i > 0 && b.functions[i-1].end > entry {
		return
	}
	if i < len(b.functions) {
		end = min(end, b.functions[i].start)
	}
	b.functions = slices.Insert(b.functions, i, function{start: entry, end: min(end, entry+entryBytes), section: outermost})
}
