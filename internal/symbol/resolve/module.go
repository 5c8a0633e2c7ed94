package resolve

import (
	"errors"
	"strings"

	"rtrace-bpf/internal/symbol"
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
	err     error        // why file is nil
	unnamed int          // addresses that were looked up and have no name
	frames  frames
	debug   debugging
}

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
	case !isFile(m.path):
		return nil, errNoFile
	}
	record := trace.Module{Path: m.path}
	if m.known {
		record = m.record
	}
	return r.open(&record)
}

// isFile reports whether the name of a mapping stands for a file.
func isFile(name string) bool {
	if !strings.HasPrefix(name, "/") {
		return false
	}
	for _, p := range [...]string{"//", "/memfd:", "/SYSV", "/dev/"} {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return true
}
