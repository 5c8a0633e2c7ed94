package survey

import (
	"strconv"
	"strings"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
)

// maxProgram is the size of the largest program whose symbols are read, in bytes.
const maxProgram = 512 << 20

// within are functions by which an allocator in the program's own file is recognised.
var within = []struct{ function, malloc string }{
	{"mallctl", "jemalloc"},
	{"je_mallctl", "jemalloc"},
	{"tc_malloc", "tcmalloc"},
	{"MallocExtension_Internal_GetStats", "tcmalloc"},
	{"mi_malloc", "mimalloc"},
	{"mi_heap_malloc", "mimalloc"},
	{"sn_malloc", "snmalloc"},
	{"rpmalloc", "rpmalloc"},
}

// identifyProgram looks for a runtime and an allocator within the program's file.
func (id *identity) identifyProgram(pid int, areas []area) {
	for i := range areas {
		m := areas[i].Map
		if !m.File() || inodeOf(&m) != id.exe {
			continue
		}
		f, err := symbol.Open(proc.Path(pid, m))
		if err != nil {
			return // it is recognised by names of files only
		}
		defer f.Close()
		if f.Go() {
			id.runtimes = addName(id.runtimes, "go")
		}
		if size, _ := f.Stamp(); size > maxProgram || f.Load() != nil {
			return
		}
		for _, w := range within {
			if _, ok := f.Defined(w.function); ok {
				id.allocators = addName(id.allocators, w.malloc)
			}
		}
		return
	}
}

// parseDevice reads "MAJOR:MINOR".
func parseDevice(text string) (device [2]uint32, ok bool) {
	major, minor, ok := strings.Cut(text, ":")
	a, err := strconv.ParseUint(major, 10, 32)
	b, err2 := strconv.ParseUint(minor, 10, 32)
	return [2]uint32{uint32(a), uint32(b)}, ok && err == nil && err2 == nil
}
