package plan

import (
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
)

// Allocator is a set of functions in one file that have the same prefix.
type Allocator struct {
	Kind   string // one of AllocatorKinds(); "" if it is none of them
	Prefix string // of the functions' names; "" for the names of C
	Path   string // the file, as the process names it
	// Serves lists the functions of C that it serves: calls by these names reach this
	// file's definition.
	Serves []string
	Traced bool
	Why    string // the reason why it is traced or not

	lib     *library
	dialect *dialect
}

// Limits on the files with allocators in a process.
const (
	maxAllocators = 64                               // files that are looked at
	maxTexts      = len(object.ProbeProcess{}.Texts) // files that can be probed
)

// chooseAllocators finds the allocators of the process, decides which are traced, and finds
// their functions with a site in each.
func (p *Plan) chooseAllocators() (err error) {
	var program programFile
	libs, err := p.findAllocators(&program)
	defer func() {
		for _, l := range libs {
			err = errors.Join(err, l.file.Close())
		}
	}()
	if err != nil {
		return err
	}
	texts := p.tracedLibraries()
	if len(texts) == 0 {
		return p.noAllocator(&program)
	}
	p.warnOfFreeless()
	var naming []namingOperators
	for _, l := range texts {
		found, err := p.chooseFunctions(l)
		if err != nil {
			return err
		}
		naming = append(naming, found)
	}
	// Numbers of operators follow those of all functions.
	for _, n := range naming {
		n.add(p)
	}
	return nil
}

// findAllocators lists the allocators of the process in p, and decides which are traced. It
// returns the files that have one, also with an error; the caller closes them. It sets
// program to what is known about the program's file.
func (p *Plan) findAllocators(program *programFile) ([]*library, error) {
	choice := newChoice(&p.Options)
	served := map[string]bool{}
	libs, err := openLibraries(p.Target, func(l *library) bool {
		choice.prepare(l)
		if l.program {
			program.read(l)
		}
		found := allocatorsOf(l, choice.prefixes, served)
		p.allocators = append(p.allocators, found...)
		return len(found) > 0
	})
	if err != nil {
		return libs, err
	}
	for i := range p.allocators {
		a := &p.allocators[i]
		a.Traced, a.Why = choice.decide(a)
	}
	return libs, choice.check(p)
}

// allocatorsOf lists the allocators that a file defines. served has the functions of C that
// an earlier file serves; those that this file serves are added.
func allocatorsOf(l *library, prefixes []string, served map[string]bool) []Allocator {
	var found []Allocator
	for _, prefix := range prefixes {
		_, malloc := l.function(prefix + "malloc")
		_, free := l.function(prefix + "free")
		if !malloc || !free && !freeless(l, prefix) {
			continue
		}
		a := Allocator{Prefix: prefix, Path: l.mapping.Path, lib: l, dialect: recognise(l, prefix)}
		if a.dialect != nil {
			a.Kind = a.dialect.kind
		}
		if prefix == "" && l.linked {
			a.Serves = serving(l, served)
		}
		found = append(found, a)
	}
	return found
}

// freeless reports whether a file may have an allocator without free. In a static program
// with a C library that links each function separately, such as musl, free is missing if
// the program never calls it. In any other file, a malloc without a free is no allocator.
func freeless(l *library, prefix string) bool {
	return prefix == "" && l.program && l.file.Alone()
}

// warnOfFreeless warns of traced allocators that have no free.
func (p *Plan) warnOfFreeless() {
	for i := range p.allocators {
		a := &p.allocators[i]
		if _, free := a.lib.function(a.Prefix + "free"); a.Traced && !free {
			p.Options.Warnf("%s is static and has malloc but no free: its allocations are traced, and nothing that it allocates is ever freed", a.Path)
		}
	}
}

// serving lists the functions of C that a file defines and no earlier one does, and adds
// them to served.
func serving(l *library, served map[string]bool) []string {
	var names []string
	for i := range MemoryModule {
		name := MemoryModule[i].Symbol
		if _, ok := l.function(name); ok && !served[name] {
			served[name] = true
			names = append(names, name)
		}
	}
	return names
}

// tracedLibraries lists the files to be probed, at most maxTexts. Files with allocators that
// serve functions of C come first; allocators in files beyond the limit are not traced.
func (p *Plan) tracedLibraries() []*library {
	var texts []*library
	for _, serves := range []bool{true, false} {
		for i := range p.allocators {
			a := &p.allocators[i]
			if !a.Traced || serves != (len(a.Serves) > 0) || slices.Contains(texts, a.lib) {
				continue
			}
			if len(texts) == maxTexts {
				a.Traced, a.Why = false, fmt.Sprintf("more than %d files", maxTexts)
				p.Options.Warnf("the allocator of %s is not traced: at most %d files with allocators can be", a.Path, maxTexts)
				continue
			}
			texts = append(texts, a.lib)
		}
	}
	return texts
}

// functionsOf lists the functions of the traced allocators in a file. Several names of one
// address are one function with aliases.
func (p *Plan) functionsOf(l *library) []Function {
	var all []Function
	byAddress := map[uint64]int{}
	several := p.tracedAllocators() > 1
	for i := range p.allocators {
		a := &p.allocators[i]
		if !a.Traced || a.lib != l {
			continue
		}
		// A known allocator reaches another one only if its function calls a function of C
		// by name. An unknown one may wrap another, so even its free is open until it
		// returns.
		wraps := a.dialect == nil && several
		for n, r := range functionRows(a.dialect, a.Prefix) {
			name := a.Prefix + r.Symbol
			sym, ok := l.function(name)
			if !ok {
				continue
			}
			if at, ok := byAddress[sym.Addr]; ok {
				all[at].Aliases = append(all[at].Aliases, name)
				continue
			}
			byAddress[sym.Addr] = len(all)
			all = append(all, Function{
				Name: name, row: r, Returns: r.returns() || wraps,
				addr: sym.Addr, size: sym.Size, ifunc: l.file.IFunc(sym.Addr),
				optional: a.Prefix != "" || n >= len(MemoryModule), wraps: wraps,
				calls: several && r.composed(), wholeArguments: p.Options.Args,
			})
		}
	}
	return all
}

// tracedAllocators returns the number of allocators that are traced.
func (p *Plan) tracedAllocators() int {
	n := 0
	for i := range p.allocators {
		if p.allocators[i].Traced {
			n++
		}
	}
	return n
}

// programFile is what is known about the file that the process runs.
type programFile struct {
	buildID   string
	functions int  // functions with symbols
	golang    bool // it is a Go program
}

func (f *programFile) read(l *library) {
	f.buildID, f.functions, f.golang = l.file.BuildID(), l.file.Functions(), l.file.Go()
}

// noAllocator returns the error for a process without an allocator to trace: ErrGo,
// ErrStripped or ErrNoAllocator.
func (p *Plan) noAllocator(program *programFile) error {
	if program.golang {
		return fmt.Errorf("process %d (%s) %w", p.Target.PID, printable.Name(p.Target.Name), host.ErrGo)
	}
	if len(p.allocators) == 0 && program.functions == 0 {
		id := ""
		if program.buildID != "" {
			id = ", build-id " + program.buildID
		}
		return fmt.Errorf("process %d (%s) %w: its program is static and has no symbols%s", p.Target.PID, p.Target.Name, host.ErrStripped, id)
	}
	return fmt.Errorf("process %d (%s) %w", p.Target.PID, printable.Name(p.Target.Name), host.ErrNoAllocator)
}
