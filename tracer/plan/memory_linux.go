package plan

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// Memory is what is probed in a process to record the calls of its allocators.
type Memory struct {
	Allocators []Allocator // all that were found, in the order in which the dynamic loader searches their files
	Functions  []Function  // of the traced allocators, by the number that events carry
	Operators  []Function  // C++ operators that give their names to the calls that they make; their numbers follow
	// News has the code of the operators new in each file that was read. It is nil unless such
	// an operator gives its name to calls by their return address: OperatorsNew.
	News     map[process.FileID][]OperatorCode
	Growths  []Growth // the allocators' calls for memory
	internal []Probe  // on calls of free that the allocator makes for itself
}

// Names lists the names of functions and operators, by the number that events carry.
func (m *Memory) Names() []string {
	var out []string
	for _, list := range [][]Function{m.Functions, m.Operators} {
		for i := range list {
			out = append(out, list[i].Name)
		}
	}
	return out
}

// ArgumentsOf describes the arguments that events of a function have.
type ArgumentsOf struct {
	Operation object.ProbeOperation
	Product   bool // the requested bytes are a product of two arguments
}

// Arguments lists the arguments of each function and operator, by the number that events
// carry.
func (m *Memory) Arguments() []ArgumentsOf {
	var out []ArgumentsOf
	for _, list := range [][]Function{m.Functions, m.Operators} {
		for i := range list {
			out = append(out, ArgumentsOf{list[i].row.operation, list[i].row.count != none})
		}
	}
	return out
}

// mostLooks is how often findMemory looks at a process that is loading a program, with a
// millisecond between two looks. Such a process may have to wait for a CPU.
const mostLooks = 500

// findMemory looks at the allocators of a process, and again if it finds none and the
// process was loading a program meanwhile. It then looks at the C++ operators.
func findMemory(o *Options, t *process.Target, sites Sites) (Memory, error) {
	var found Memory
	for look := 1; ; look++ {
		before, _ := t.Mappings() // if the process has ended, look returns the error
		found = Memory{}
		s := memorySearch{options: o, target: t, found: &found}
		err := s.look()
		if err == nil {
			break
		}
		if look == mostLooks || !errors.Is(err, host.ErrNoAllocator) && !errors.Is(err, host.ErrStripped) {
			return found, err
		}
		after, gone := t.Mappings()
		if gone != nil || slices.EqualFunc(before, after, process.Mapping.Same) && !t.Loading(after) {
			return found, err
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(t.PIDFD), Events: unix.POLLIN}}, 1) // a millisecond, or until the process ends
	}
	operators := operatorSearch{options: o, target: t, found: &found}
	err := operators.look(sites)
	return found, err
}

// memorySearch is one look at the allocators of a process.
type memorySearch struct {
	options *Options
	target  *process.Target
	found   *Memory
	program programFile
}

// look finds the allocators of the process, decides which are traced, and finds their
// functions with a site in each. It adds the code of each file to Target.Texts.
func (s *memorySearch) look() (err error) {
	libs, err := s.findAllocators()
	defer func() {
		for _, l := range libs {
			err = errors.Join(err, l.file.Close())
		}
	}()
	if err != nil {
		return err
	}
	texts := tracedLibraries(s.found.Allocators, s.options.Warnf)
	if len(texts) == 0 {
		return s.noAllocator()
	}
	warnOfFreeless(s.found.Allocators, s.options.Warnf)
	type naming struct {
		code      *code
		operators []Function
	}
	var names []naming
	for _, l := range texts {
		c, operators, err := s.chooseFunctions(l)
		if err != nil {
			return err
		}
		names = append(names, naming{c, operators})
	}
	// Numbers of operators follow those of all functions.
	operators := operatorSearch{options: s.options, target: s.target, found: s.found}
	for _, n := range names {
		operators.add(n.code, n.operators)
	}
	return nil
}

// findAllocators lists the allocators of the process, and decides which are traced. It
// returns the files that have one, also with an error; the caller closes them. It also reads
// what noAllocator needs about the program's file.
func (s *memorySearch) findAllocators() ([]*library, error) {
	choice := newChoice(s.options)
	served := map[string]bool{}
	rows := OperatorModule(s.target.Machine.Word)
	if s.options.Operators == OperatorsNew {
		s.found.News = map[process.FileID][]OperatorCode{}
	}
	libs, err := openLibraries(s.target, func(l *library) bool {
		choice.prepare(l)
		if l.program {
			s.program.read(l)
		}
		if s.found.News != nil {
			s.found.News[l.id()] = newOperators(rows, l.mapping.Path, l.function)
		}
		found := allocatorsOf(l, choice.prefixes, served)
		s.found.Allocators = append(s.found.Allocators, found...)
		return len(found) > 0
	})
	if err != nil {
		return libs, err
	}
	for i := range s.found.Allocators {
		a := &s.found.Allocators[i]
		a.Traced, a.Why = choice.decide(a)
	}
	return libs, choice.check(s.target, s.found.Allocators)
}

// chooseFunctions finds the functions of the traced allocators in a file and a site in each.
// It returns the file's code, and its operators that give their names to calls of these
// functions.
func (s *memorySearch) chooseFunctions(lib *library) (*code, []Function, error) {
	functions, own := functionsOf(s.found.Allocators, lib, s.options.Args), []Function(nil)
	if hasNamesOfC(s.found.Allocators, lib.id()) {
		functions, own = ownOperators(lib, s.target.Machine.Word, functions)
	}
	c, err := newCode(s.target.Machine, lib, len(s.target.Texts), slices.Concat(functions, own))
	if err != nil {
		return nil, nil, err
	}
	counting, naming := sortOperators(c, functions, own, s.options.Warnf)
	functions = append(functions, counting...)
	for i := range functions {
		f := functions[i]
		switch err := c.chooseNumbered(&f, len(s.found.Functions)); {
		case err != nil && f.optional:
			s.options.Warnf("%s of %s is not traced: %v", f.Name, lib.mapping.Path, err)
		case err != nil:
			return nil, nil, err
		case !f.freesElsewhere():
			c.choosePaths(&f, len(s.found.Functions), s.options)
			s.found.Functions = append(s.found.Functions, f)
		}
	}
	if s.options.HeapGrowth {
		s.found.Growths = append(s.found.Growths, findGrowths(c, functions, s.options.Warnf)...)
	}
	s.target.Texts = append(s.target.Texts, process.ProbedText{File: lib.id(), Base: c.text.base, Code: c.extent()})
	s.found.internal = append(s.found.internal, c.internal()...)
	return c, naming, nil
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
func (s *memorySearch) noAllocator() error {
	t := s.target
	if s.program.golang {
		return fmt.Errorf("process %d (%s) %w", t.PID, printable.Name(t.Name), host.ErrGo)
	}
	if len(s.found.Allocators) == 0 && s.program.functions == 0 {
		id := ""
		if s.program.buildID != "" {
			id = ", build-id " + s.program.buildID
		}
		return fmt.Errorf("process %d (%s) %w: its program is static and has no symbols%s", t.PID, t.Name, host.ErrStripped, id)
	}
	return fmt.Errorf("process %d (%s) %w", t.PID, printable.Name(t.Name), host.ErrNoAllocator)
}
