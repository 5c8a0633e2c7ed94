package resolve

import (
	"errors"
	"strings"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/linecache"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// module is a file that is or was mapped.
type module struct {
	path    string
	buildID string       // as the trace gives it, in lower case; may be empty
	known   bool         // the trace describes it
	waiting bool         // mappings without a description refer to it
	record  trace.Module // if known
	tried   bool
	noFile  bool // its name does not stand for a file
	warned  bool
	file    *symbol.File // nil if it is missing or does not match
	bare    *frame       // for addresses in no known function
	frames  map[int]*frame
	places  map[uint64]*frame // by address in the file, where frames have lines
	texts   int               // bytes that frames occupy

	lines  *lines.Table // nil if there is no debugging information
	looked bool         // lines were looked for
	cached *linecache.Entry
	asked  bool         // the cache was asked
	debug  *symbol.File // the file of lines, closed; it finds further files
}

// maxTexts bounds the bytes of the frames of one module.
const maxTexts = 64 << 20

// The names of mappings that are code of the kernel.
const (
	vdsoName     = "[vdso]"
	vsyscallName = "[vsyscall]"
)

// errNoFile reports that a mapping's name does not stand for a file.
var errNoFile = errors.New("no file")

// open opens the module's file. The error is errNoFile if the name does not stand for a
// file.
func (m *module) open(r *Resolver) (*symbol.File, error) {
	switch {
	case m.path == vdsoName && m.buildID != "":
		return openVDSO()
	case !strings.HasPrefix(m.path, "/"), strings.HasPrefix(m.path, "//"), strings.HasPrefix(m.path, "/memfd:"),
		strings.HasPrefix(m.path, "/SYSV"), strings.HasPrefix(m.path, "/dev/"):
		return nil, errNoFile
	}
	record := trace.Module{Path: m.path}
	if m.known {
		record = m.record
	}
	return r.open(&record)
}

// frame returns the frame of function i of f, or one without a function if i is negative.
func (m *module) frame(f *symbol.File, i int) *frame {
	if i < 0 {
		return m.bare
	}
	if fr, ok := m.frames[i]; ok {
		return fr
	}
	fr := m.named(f.At(i).Name)
	m.keep(fr)
	if m.frames == nil {
		m.frames = make(map[int]*frame)
	}
	m.frames[i] = fr
	return fr
}

// keep counts the memory of a frame and drops the others if the total is too large.
func (m *module) keep(fr *frame) {
	const overhead = 128 // of a frame in its map
	n := overhead + len(fr.text) + len(fr.name)
	if m.texts += n; m.texts > maxTexts {
		clear(m.frames)
		clear(m.places)
		m.texts = n
	}
}

// named returns the frame of the function with the given symbol name.
func (m *module) named(name string) *frame {
	source, text := printed(name)
	return &frame{name: source, module: m.path, text: text + " from " + m.path}
}

// printed returns the name that a function has in the source, and its text: the name
// followed by "()" unless it includes the parameters.
func printed(name string) (source, text string) {
	source, mangled := symbol.Source(name)
	if mangled {
		return source, source
	}
	return source, source + "()"
}

// vsyscallFunctions are the functions of the [vsyscall] page of x86-64, which are 1 KiB
// apart (Linux, arch/x86/include/uapi/asm/vsyscall.h).
var vsyscallFunctions = [...]string{"gettimeofday", "time", "getcpu"}

// vsyscall returns the frame of an address in the [vsyscall] page.
func (m *module) vsyscall(addr uint64) *frame {
	const page, step = 0xffffffffff600000, 1024
	if i := (addr - page) / step; addr >= page && i < uint64(len(vsyscallFunctions)) {
		if m.frames == nil {
			m.frames = make(map[int]*frame)
		}
		if m.frames[int(i)] == nil {
			m.frames[int(i)] = m.named(vsyscallFunctions[i])
		}
		return m.frames[int(i)]
	}
	return m.bare
}
