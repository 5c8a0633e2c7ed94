package plan

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/process"
)

// FunctionProbe is the probes of a traced function, or of a value that is read at a place in
// one, in a file. The user has named it, or a resource module has it.
type FunctionProbe struct {
	Function *functions.Function // nil for a value
	Value    *functions.Value    // nil for a function
	spec     int                 // index in FunctionSearch.places, or anyModuleFunction
	Entry    Probe               // at the function's beginning, or where the value is read
	Back     uint64              // bytes from the function's beginning to that probe
	Returns  []Probe             // on return instructions
	Ways     functions.Ways      // with Stub, there is a return probe in place of Returns
}

// Place returns the place that the user or the module named.
func (n *FunctionProbe) Place() functions.Place {
	if n.Value != nil {
		return n.Value.Place
	}
	return n.Function.Place
}

// searchedFile is the key of a search for a function, or for all module functions, in a file.
type searchedFile struct {
	spec int // see FunctionProbe.spec
	file process.FileID
}

// FunctionSearch looks for traced functions in the files of a process.
type FunctionSearch struct {
	target *process.Target
	places []functions.Place     // that the user named: of functions, then of values
	found  map[searchedFile]bool // searches that are done, whatever they found
	Probes []FunctionProbe       // found by this search
	Errs   map[int]error         // by index of the place: why a file that fits has no probe
	fits   map[int]bool          // places whose library some file is
	throws int8                  // whether the process may throw exceptions: 1 yes, -1 no, 0 not known yet

	functions []functions.Function // that the user named
	values    []functions.Value    // that the user named
	modules   []functions.Function // of the resource modules
	unprobed  []error              // why some module functions have no probes
}

// TracedFunctions is what a plan holds of function tracing and of resource modules: functions
// that the user named, and those of libraries. Their files may be mapped later, so more
// searches follow the first one.
type TracedFunctions struct {
	Probes   []FunctionProbe       // found when the plan was made
	Modules  []functions.Function  // the functions of the resource modules
	searched map[searchedFile]bool // searches that are done, whatever they found
}

// NewFunctionSearch returns a search for the functions and values in a plan's options and
// for the functions of its resource modules. It leaves out searches that were done, and
// notes its own as done in p.Functions.
func NewFunctionSearch(p *Plan) *FunctionSearch {
	return newFunctionSearch(&p.Options.Functions, p.Target, &p.Functions)
}

func newFunctionSearch(o *functions.Options, t *process.Target, f *TracedFunctions) *FunctionSearch {
	s := &FunctionSearch{
		target: t, found: f.searched, Errs: map[int]error{}, fits: map[int]bool{},
		functions: o.Functions, values: o.Values, modules: f.Modules,
	}
	for i := range o.Functions {
		s.places = append(s.places, o.Functions[i].Place)
	}
	for i := range o.Values {
		s.places = append(s.places, o.Values[i].Place)
	}
	return s
}

// findFunctions finds the functions of function tracing and of resource modules. If the file
// of a function that the user named is not mapped yet, it opens the file by its path, or
// warns if there is no path.
func findFunctions(options *Options, t *process.Target) (TracedFunctions, error) {
	o := &options.Functions
	f := TracedFunctions{searched: map[searchedFile]bool{}}
	if o.Any() && o.Record == nil {
		return f, errors.New("functions are to be traced, but Options.Functions.Record is not set")
	}
	narrow := t.Narrow()
	for i := range o.Functions {
		if err := o.Functions[i].Check(narrow); err != nil {
			return f, err
		}
	}
	for i := range o.Values {
		if err := o.Values[i].Check(narrow); err != nil {
			return f, err
		}
	}
	f.Modules = modules.Functions(options.Modules, options.Frames() > 0)
	s := newFunctionSearch(o, t, &f)
	if err := s.Look(); err != nil {
		return f, err
	}
	for i, place := range s.places {
		switch {
		case s.Errs[i] != nil:
			return f, s.Errs[i]
		case s.fits[i]:
		case strings.Contains(place.Library, "/"):
			if err := s.ahead(i); err != nil {
				return f, err
			}
		default:
			options.Warnf("%s: process %d has no file %s mapped: if it maps one later, calls before the probes are in will be missing; name the file by its path to have them in from the start", place, t.PID, place.Library)
		}
	}
	s.warn(options)
	f.Probes = s.Probes
	return f, nil
}

// Look searches the files that are mapped now, each once. It adds what it finds to s.Probes.
func (s *FunctionSearch) Look() error {
	maps, err := s.target.Mappings()
	if err != nil {
		return err
	}
	_, program := s.target.LinkOrder()
	seen := map[process.FileID]bool{}
	for _, m := range maps {
		if m.Inode == 0 || seen[m.ID()] {
			continue
		}
		seen[m.ID()] = true
		var wanted []int
		for i, place := range s.places {
			if fitsLibrary(place.Library, m, program) {
				s.fits[i] = true
				if !s.found[searchedFile{i, m.ID()}] {
					wanted = append(wanted, i)
				}
			}
		}
		known := len(s.modules) > 0 && !s.found[searchedFile{anyModuleFunction, m.ID()}]
		if len(wanted) == 0 && !known {
			continue
		}
		f, path, err := s.target.Open(m)
		if err != nil || f == nil {
			continue
		}
		lib := &library{mapping: m, path: path, file: f, program: m.ID() == program}
		s.lookIn(lib, wanted)
		if known {
			s.lookForModules(lib)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("close %s: %w", path, err)
		}
	}
	return nil
}

// fitsLibrary reports whether the user means the file at m by name: a path, the name of a
// library with or without .so and what follows it, or "" for the program.
func fitsLibrary(name string, m process.Mapping, program process.FileID) bool {
	switch base := filepath.Base(m.Path); {
	case name == "":
		return m.ID() == program
	case strings.Contains(name, "/"):
		return m.Path == name
	default:
		return base == name || strings.HasPrefix(base, name+".so")
	}
}

// ahead searches a file that is not mapped yet. Probes belong to files, so they are in as
// soon as the file is mapped.
func (s *FunctionSearch) ahead(spec int) error {
	place := s.places[spec]
	path := fmt.Sprintf("/proc/%d/root%s", s.target.PID, place.Library)
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("%s: process %d (%s) has no such file mapped, and it cannot be opened: %w", place, s.target.PID, s.target.Name, err)
	}
	f, err := symbol.OpenIn(fmt.Sprintf("/proc/%d/root", s.target.PID), place.Library)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	defer f.Close()
	m := process.Mapping{Path: place.Library, Inode: st.Ino, Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev)}
	s.lookIn(&library{mapping: m, path: path, file: f}, []int{spec})
	return s.Errs[spec]
}

// lookIn searches a file for the places with indexes in wanted. For a place that it cannot
// probe there, it sets s.Errs.
func (s *FunctionSearch) lookIn(lib *library, wanted []int) {
	if lib.file.Machine() != s.target.Machine.ELF {
		return
	}
	c := unread(s.target.Machine, lib)
	for _, i := range wanted {
		s.found[searchedFile{i, lib.id()}] = true
		n := FunctionProbe{spec: i}
		if i < len(s.functions) {
			n.Function = &s.functions[i]
		} else {
			n.Value = &s.values[i-len(s.functions)]
		}
		if err := s.locate(c, &n); err != nil {
			s.Errs[i] = fmt.Errorf("%s: %w", n.Place(), err)
			continue
		}
		s.Probes = append(s.Probes, n)
	}
}

// locate sets the probes of a function or a value.
func (s *FunctionSearch) locate(c *code, n *FunctionProbe) error {
	place := n.Place()
	start, size, err := find(c.lib, place)
	if err != nil {
		return err
	}
	addr := start
	if place.Symbol != "" {
		addr += place.Offset
	}
	if err := c.read(addr); err != nil {
		return err
	}
	from, end, known := c.bounds.around(addr)
	if !known && size > 0 {
		from, end, known = start, start+size, true
	}
	if n.Value != nil {
		return n.look(c, addr, from, end, known)
	}
	if place.Symbol == "" && (!known || from != addr) {
		return fmt.Errorf("no function of %[2]s begins at %#[1]x, according to its symbols and call frame information", addr, c.lib.mapping.Path)
	}
	if !known {
		end = addr + 1
	}
	return s.enter(c, n, addr, end)
}

// find returns the address and the size of a place's function. If the place has no symbol,
// they are the address that it names, and 0.
func find(lib *library, place functions.Place) (addr, size uint64, err error) {
	if place.Symbol == "" {
		return place.Offset, 0, nil
	}
	if _, ok := lib.file.Defined("runtime.gopanic"); ok {
		return 0, 0, fmt.Errorf("%s is a Go program: its functions pass arguments in a way of Go's own, and move to other threads and stacks", lib.mapping.Path)
	}
	if sym, ok := lib.file.Defined(place.Symbol); ok && sym.Global {
		if lib.file.IFunc(sym.Addr) {
			return 0, 0, fmt.Errorf("%s selects one of several functions when the program starts (an ifunc): name that one", place.Symbol)
		}
		return sym.Addr, sym.Size, nil
	}
	var all []symbol.Symbol
	for i := range lib.file.Functions() {
		sym := lib.file.At(i)
		if !hasName(sym.Name, place.Symbol) || slices.ContainsFunc(all, func(x symbol.Symbol) bool { return x.Addr == sym.Addr }) {
			continue
		}
		all = append(all, sym)
	}
	switch len(all) {
	case 0:
		return 0, 0, fmt.Errorf("%s has no function of that name%s", lib.mapping.Path, hintStripped(lib.file))
	case 1:
		return all[0].Addr, all[0].Size, nil
	}
	var text strings.Builder
	for _, sym := range all[:min(len(all), 4)] {
		fmt.Fprintf(&text, " +%#x (%s)", sym.Addr, symbol.Text(sym.Name))
	}
	return 0, 0, fmt.Errorf("%s has %d functions of that name: name one by its address:%s", lib.mapping.Path, len(all), text.String())
}

// hintStripped returns a hint to append to a message if f has no symbols, else "".
func hintStripped(f *symbol.File) string {
	if f.Functions() == 0 {
		return ": it has no symbols at all; name an address, such as +0x1234"
	}
	return ""
}

// hasName reports whether the user means the symbol sym by name: the symbol itself, or the
// function's name in the source, with or without parameters. A part that the compiler has
// split off from a function does not count.
func hasName(sym, name string) bool {
	if sym == name {
		return true
	}
	text, mangled := symbol.Demangle(sym)
	if !mangled {
		return false
	}
	return text == name || strings.HasPrefix(text, name+"(") && !strings.HasSuffix(text, "]")
}
