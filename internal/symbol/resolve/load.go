package resolve

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// Reasons not to use a file.
var (
	errMany    = errors.New("the symbols of all files exceed the memory limit")
	errMachine = errors.New("it is for a different machine than the trace")
	errLinked  = errors.New("it is linked differently from the traced file")
	errPlace   = errors.New("its segments do not fit the mapping in the trace")

	// ErrUnidentified reports that a trace does not identify a file; see Options.Identified.
	ErrUnidentified = errors.New("the trace does not identify the file")
)

// buildError reports that a file is a different build from the traced one.
type buildError struct{ got, want string }

func (e *buildError) Error() string {
	return fmt.Sprintf("it is a different build from the traced file (build ID %s, not %s)", cmp.Or(e.got, "unknown"), e.want)
}

// open opens the file of a module.
func (r *Resolver) open(m *trace.Module) (*symbol.File, error) {
	if r.options.Open != nil {
		return r.options.Open(*m)
	}
	return r.options.Places.Open(m.Path)
}

// load opens and reads the file of m, once.
func (r *Resolver) load(m *module) *symbol.File {
	if m.tried {
		return m.file
	}
	m.tried = true
	if r.symbols >= cmp.Or(r.options.MaxSymbols, maxSymbols) {
		r.stats.Missing++
		r.warn(m, errMany)
		return nil
	}
	f, err := r.find(m)
	m.err = err
	switch {
	case errors.Is(err, ErrUnidentified):
		r.stats.Missing++
		return nil
	case errors.Is(err, errNoFile):
		m.noFile = true
		return nil
	case isMismatch(err):
		r.stats.Mismatched++
		r.warn(m, err)
		return nil
	case err != nil:
		r.stats.Missing++
		r.warn(m, err)
		return nil
	}
	if f.Load() != nil && f.Functions() == 0 {
		r.stats.Missing++
	}
	_ = f.Close() // the file was only read
	r.symbols += f.Held()
	m.file = f
	return f
}

// find opens the file of m, under its path or else by its build ID. If neither is found,
// the error is the one for the path.
func (r *Resolver) find(m *module) (*symbol.File, error) {
	f, err := m.open(r)
	if err == nil && f == nil {
		err = fs.ErrNotExist
	}
	if err == nil {
		if err = r.matches(m, f); err == nil {
			return f, nil
		}
		_ = f.Close() // the file was only read
	}
	if m.buildID == "" || errors.Is(err, errNoFile) || r.options.Open != nil || m.path == vdsoName {
		return nil, err
	}
	other, e := r.options.OpenBuildID(m.buildID)
	if e != nil {
		return nil, err
	}
	return other, nil
}

// matches returns an error that describes why f is not the traced file, or nil if it may
// be.
func (r *Resolver) matches(m *module, f *symbol.File) error {
	switch {
	case m.buildID != "" && f.BuildID() != m.buildID:
		return &buildError{f.BuildID(), m.buildID}
	case m.buildID != "":
		return nil
	case len(r.machines) > 0 && !slices.Contains(r.machines, f.Machine()):
		return errMachine
	case m.known && m.record.Fixed != f.Fixed():
		return errLinked
	case r.options.Identified && !r.same(m, f):
		return ErrUnidentified
	}
	return nil
}

// same reports whether f is the file of m, which has no build ID in the trace, because the tracer
// found none in it and it has not changed since.
func (r *Resolver) same(m *module, f *symbol.File) bool {
	_, changed := f.Stamp()
	return m.known && f.BuildID() == "" && r.began != 0 && changed < r.began
}

// isMismatch reports whether an error means that a file is not the traced one.
func isMismatch(err error) bool {
	_, ok := errors.AsType[*buildError](err)
	return ok || errors.Is(err, errMachine) || errors.Is(err, errLinked)
}

// warn reports why the functions of a file have no names.
func (r *Resolver) warn(m *module, err error) {
	if r.options.Warn == nil || m.warned || m.path == vdsoName {
		return
	}
	m.warned = true
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	r.options.Warn(fmt.Errorf("no function names for %s: %w", m.path, err))
}

// machinesOf returns the instruction sets of the files that run on a machine, given its
// name as in uname -m. It returns nil for an unknown machine.
func machinesOf(arch string) []elf.Machine {
	switch {
	case arch == "x86_64":
		return []elf.Machine{elf.EM_X86_64, elf.EM_386}
	case len(arch) == len("i686") && arch[0] == 'i' && strings.HasSuffix(arch, "86"):
		return []elf.Machine{elf.EM_386}
	case arch == "aarch64":
		return []elf.Machine{elf.EM_AARCH64, elf.EM_ARM}
	case strings.HasPrefix(arch, "arm"):
		return []elf.Machine{elf.EM_ARM}
	}
	return nil
}
