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
	"rtrace-bpf/tracer/site"
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

	functions       []functions.Function // that the user named
	values          []functions.Value    // that the user named
	ModuleFunctions []functions.Function // of the resource modules
	unprobed        []error              // why some module functions have no probes
}

// NewFunctionSearch returns a search for the functions and values in a plan's options and
// for the functions of its resource modules. It leaves out searches in p.searched, and adds
// its own there.
func NewFunctionSearch(p *Plan) *FunctionSearch {
	o := &p.Options.Functions
	s := &FunctionSearch{
		target: p.Target, found: p.searched, Errs: map[int]error{}, fits: map[int]bool{},
		functions: o.Functions, values: o.Values, ModuleFunctions: p.ModuleFunctions,
	}
	for i := range o.Functions {
		s.places = append(s.places, o.Functions[i].Place)
	}
	for i := range o.Values {
		s.places = append(s.places, o.Values[i].Place)
	}
	return s
}

// findFunctions finds the functions of function tracing and of resource modules. If a file
// of a function that the user named is not mapped yet, it opens the file by its path, or warns if
// there is no path.
func (p *Plan) findFunctions() error {
	o := &p.Options.Functions
	if !p.Options.Calls() {
		return nil
	}
	if o.Any() && o.Record == nil {
		return errors.New("functions are to be traced, but Options.Functions.Record is not set")
	}
	narrow := p.Target.Narrow()
	for i := range o.Functions {
		if err := o.Functions[i].Check(narrow); err != nil {
			return err
		}
	}
	for i := range o.Values {
		if err := o.Values[i].Check(narrow); err != nil {
			return err
		}
	}
	p.searched = map[searchedFile]bool{}
	p.ModuleFunctions = modules.Functions(p.Options.Modules, p.Options.Frames() > 0)
	s := NewFunctionSearch(p)
	if err := s.Look(); err != nil {
		return err
	}
	for i, place := range s.places {
		switch {
		case s.Errs[i] != nil:
			return s.Errs[i]
		case s.fits[i]:
		case strings.Contains(place.Library, "/"):
			if err := s.ahead(i); err != nil {
				return err
			}
		default:
			p.Options.Warnf("%s: process %d has no file %s mapped: if it maps one later, calls before the probes are in will be missing; name the file by its path to have them in from the start", place, p.Target.PID, place.Library)
		}
	}
	s.warn(&p.Options)
	p.FunctionProbes = s.Probes
	return nil
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
		known := len(s.ModuleFunctions) > 0 && !s.found[searchedFile{anyModuleFunction, m.ID()}]
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
	c := &code{lib: lib, machine: s.target.Machine}
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
	from, end, known := c.around(addr)
	if !known && size > 0 {
		from, end, known = start, start+size, true
	}
	if n.Value != nil {
		return n.look(c, addr, from, end, known)
	}
	if place.Symbol == "" && (!known || from != addr) {
		return fmt.Errorf("the symbols and call frame information of %[2]s have no function that begins at %#[1]x", addr, c.lib.mapping.Path)
	}
	if !known {
		end = addr + 1
	}
	return s.enter(c, n, addr, end)
}

// find returns the address and the bytes of a place's function. Without a symbol it returns
// the address that the place names, and no size.
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

// hintStripped returns the end of a message if a file has no symbols.
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

// read sets c.text and c.base to the code segment that contains addr.
func (c *code) read(addr uint64) error {
	if addr >= c.base && addr-c.base < uint64(len(c.text)) {
		return nil
	}
	for _, s := range c.lib.file.Segments() {
		if addr < s.Addr || addr-s.Addr >= s.FileSize {
			continue
		}
		text, err := c.lib.file.Code(s.Addr, min(s.FileSize, maxText))
		if err != nil {
			return fmt.Errorf("read code of %s: %w", c.lib.mapping.Path, err)
		}
		c.base, c.text = s.Addr, text
		return nil
	}
	return fmt.Errorf("%s has no code at %#x", c.lib.mapping.Path, addr)
}

// look sets the probe of a value at addr. from and end are the bounds of the function there,
// if known.
func (n *FunctionProbe) look(c *code, addr, from, end uint64, known bool) error {
	if !known || addr >= end {
		return fmt.Errorf("the symbols and call frame information of %[2]s have no function that contains %#[1]x", addr, c.lib.mapping.Path)
	}
	if !site.Begins(c.machine.Arch, c.between(from, end), from, addr) {
		return fmt.Errorf("no instruction begins at %#x of %s", addr, c.lib.mapping.Path)
	}
	if !site.Keeps(c.machine.Arch, c.between(addr, end), addr) {
		return fmt.Errorf("the instruction at %#x of %s cannot have a probe: the kernel would misread it or refuses it", addr, c.lib.mapping.Path)
	}
	return n.putEntry(c, addr)
}

// putEntry sets the entry probe to the address addr of the file.
func (n *FunctionProbe) putEntry(c *code, addr uint64) error {
	var ok bool
	if n.Entry, ok = c.probe(n.Place().String(), addr); !ok {
		return fmt.Errorf("%#x is not in the file %s", addr, c.lib.mapping.Path)
	}
	return nil
}

// enter sets the probes of the function at [addr, end).
func (s *FunctionSearch) enter(c *code, n *FunctionProbe, addr, end uint64) error {
	body := c.between(addr, end)
	branches := site.Direct(c.machine.Arch, body, addr)
	n.Ways.Jumps = slices.ContainsFunc(branches, func(b site.Branch) bool { return !b.Call && (b.To < addr || b.To >= end) })
	at := addr + branchTarget(body)
	inLoop := func(at uint64) bool {
		return slices.ContainsFunc(branches, func(b site.Branch) bool { return !b.Call && b.To == at })
	}
	keeps := func(at uint64) bool { return site.Keeps(c.machine.Arch, c.text[at-c.base:], at) }
	if !n.Function.Reads() || !keeps(at) {
		if later, ok := n.cheaper(c, body, addr); ok {
			at = later
		}
	}
	if inLoop(at) || !keeps(at) {
		at = addr
	}
	if !keeps(at) {
		return errors.New("its first instruction cannot have a probe: the kernel would misread it or refuses it")
	}
	if inLoop(at) {
		return errors.New("its first instruction begins a loop: calls cannot be distinguished from iterations")
	}
	n.Back = at - addr
	if err := n.putEntry(c, at); err != nil {
		return err
	}
	if n.Function.Result == 0 {
		return nil
	}
	exits, err := site.Returns(c.sites(), site.Flow{
		Entry: addr, Code: c.text, Base: c.base,
		Bounds: func(addr uint64) (uint64, bool) {
			_, end, ok := c.around(addr)
			return end, ok
		},
	})
	if err != nil {
		if s.mayThrow() {
			return fmt.Errorf("its returns cannot be found (%w), and a return probe would kill a program that throws an exception through it: leave out the letter of the result to record only its entries", err)
		}
		n.Ways.Stub = true
		return nil
	}
	for _, addr := range exits.Returns {
		probe, ok := c.probe(n.Place().String(), addr)
		if !ok {
			return fmt.Errorf("its return at %#x is not in the file", addr)
		}
		n.Returns = append(n.Returns, probe)
	}
	return nil
}

// cheaper returns an address after the first instruction where the entry probe costs less.
// All arguments are still in their places there, but the memory that they point to may have
// changed. ok is false if there is none, and for functions that the user named.
func (n *FunctionProbe) cheaper(c *code, body []byte, addr uint64) (at uint64, ok bool) {
	if !n.Module() || n.Function.Owner != "" {
		return 0, false
	}
	places := site.Arguments(c.sites())
	f := site.Function{Name: n.Function.Symbol, Entry: addr, Code: body, Return: true, Incoming: c.branches}
	for i := range min(len(n.Function.Args), len(places)) {
		f.Args = append(f.Args, i)
	}
	s, err := site.Choose(c.sites(), f)
	if err != nil {
		return 0, false
	}
	for i, p := range s.Args {
		if p.Reg != places[i] || p.Product {
			return 0, false
		}
	}
	return s.Addr, true
}

// branchTarget returns the bytes of an instruction at the start of code that only marks
// a target of indirect calls (endbr32, endbr64), or 0. A probe after it is cheaper, because
// the kernel emulates most instructions that follow it.
func branchTarget(code []byte) uint64 {
	if len(code) > 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3]&0xfe == 0xfa { // endbr64, endbr32
		return 4
	}
	return 0
}
