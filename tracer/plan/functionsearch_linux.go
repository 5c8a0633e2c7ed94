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

// FunctionProbe is a function, or a place in one, that the user names, in a file.
type FunctionProbe struct {
	Function *functions.Function
	Value    *functions.Value // if there is no function
	spec     int              // its number among all that are named
	Entry    Probe            // at a function's beginning, or where a value is read
	Back     uint64           // bytes from the beginning to that probe
	Returns  []Probe          // at return instructions
	Ways     functions.Ways   // Stub: a return probe in place of these
}

// Place returns what the user has named.
func (n *FunctionProbe) Place() functions.Place {
	if n.Value != nil {
		return n.Value.Place
	}
	return n.Function.Place
}

// SearchedFile says that something named was found in a file.
type SearchedFile struct {
	spec int
	file process.FileID
}

// FunctionSearch looks for named functions in the files of a process.
type FunctionSearch struct {
	target *process.Target
	places []functions.Place
	found  map[SearchedFile]bool // there, or refused
	Probes []FunctionProbe       // that were found by this search
	Errs   map[int]error         // by spec: why a file that fits has none
	fits   map[int]bool          // specs that some file fits
	throws int8                  // whether the process may throw exceptions: 1, or -1 for no; 0: not known yet

	functions       []functions.Function
	values          []functions.Value
	ModuleFunctions []functions.Function // that modules know
	unprobed        []error              // why some of these have no probes
}

// NewFunctionSearch returns a search for what a plan's options name and its modules know.
func NewFunctionSearch(p *Plan) *FunctionSearch {
	o := &p.Options.Functions
	s := &FunctionSearch{
		target: p.Target, found: p.Searched, Errs: map[int]error{}, fits: map[int]bool{},
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

// FindFunctions finds what the user has named. A library that is not there yet may come.
func (p *Plan) FindFunctions() error {
	o := &p.Options.Functions
	if !p.Options.Calls() {
		return nil
	}
	if o.Any() && o.Record == nil {
		return errors.New("nobody makes records of what functions are called")
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
	p.Searched = map[SearchedFile]bool{}
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
			p.Options.Warnf("%s: process %d has no file %s mapped: when it maps one, calls before that is seen are missing; the file's path would have its probes in before", place, p.Target.PID, place.Library)
		}
	}
	s.warn(&p.Options)
	p.FunctionProbes = s.Probes
	return nil
}

// Look goes through the files that are mapped.
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
				if !s.found[SearchedFile{i, m.ID()}] {
					wanted = append(wanted, i)
				}
			}
		}
		known := len(s.ModuleFunctions) > 0 && !s.found[SearchedFile{AnyModuleFunction, m.ID()}]
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
			s.LookForModules(lib)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("close %s: %w", path, err)
		}
	}
	return nil
}

// fitsLibrary says whether the user means a file by a name.
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

// ahead looks into a file that is not mapped yet. Probes belong to the file, so that
// they are there when it is.
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

// lookIn looks for what fits a file. What it has not is an error only if no other file
// has it.
func (s *FunctionSearch) lookIn(lib *library, wanted []int) {
	if lib.file.Machine() != s.target.Machine.ELF {
		return
	}
	c := &code{lib: lib, machine: s.target.Machine}
	for _, i := range wanted {
		s.found[SearchedFile{i, lib.id()}] = true
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

// locate finds the probes of a function or a value.
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
		return fmt.Errorf("no function begins at %#x of %s, by what the file tells", addr, c.lib.mapping.Path)
	}
	if !known {
		end = addr + 1
	}
	return s.enter(c, n, addr, end)
}

// find returns the address of a symbol, or the one that is named.
func find(lib *library, place functions.Place) (addr, size uint64, err error) {
	if place.Symbol == "" {
		return place.Offset, 0, nil
	}
	if _, ok := lib.file.Defined("runtime.gopanic"); ok {
		return 0, 0, fmt.Errorf("%s is a Go program: its functions pass arguments in their own way, and change threads and stacks", lib.mapping.Path)
	}
	if sym, ok := lib.file.Defined(place.Symbol); ok && sym.Global {
		if lib.file.IFunc(sym.Addr) {
			return 0, 0, fmt.Errorf("%s chooses one of several functions when it starts (an ifunc): name that one", place.Symbol)
		}
		return sym.Addr, sym.Size, nil
	}
	var all []symbol.Symbol
	for i := range lib.file.Functions() {
		sym := lib.file.At(i)
		if !HasName(sym.Name, place.Symbol) || slices.ContainsFunc(all, func(x symbol.Symbol) bool { return x.Addr == sym.Addr }) {
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

func hintStripped(f *symbol.File) string {
	if f.Functions() == 0 {
		return ": it has no symbols at all; name an address, as +0x1234"
	}
	return ""
}

// HasName says whether a symbol is what the user names: as it is, or as in the source,
// there with or without its parameters. A part that the compiler has split off is not it.
func HasName(sym, name string) bool {
	if sym == name {
		return true
	}
	text, mangled := symbol.Demangle(sym)
	if !mangled {
		return false
	}
	return text == name || strings.HasPrefix(text, name+"(") && !strings.HasSuffix(text, "]")
}

// read reads the code segment that addr is in.
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

// look makes the probe of a value.
func (n *FunctionProbe) look(c *code, addr, from, end uint64, known bool) error {
	if !known || addr >= end {
		return fmt.Errorf("%#x of %s is in no function, by what the file tells", addr, c.lib.mapping.Path)
	}
	if !site.Begins(c.machine.Arch, c.between(from, end), from, addr) {
		return fmt.Errorf("no instruction begins at %#x of %s", addr, c.lib.mapping.Path)
	}
	if !site.Keeps(c.machine.Arch, c.between(addr, end), addr) {
		return fmt.Errorf("the instruction at %#x of %s cannot have a probe: the kernel would take it for another one, or refuses it", addr, c.lib.mapping.Path)
	}
	return n.putEntry(c, addr)
}

func (n *FunctionProbe) putEntry(c *code, addr uint64) error {
	var ok bool
	if n.Entry, ok = c.probe(n.Place().String(), addr); !ok {
		return fmt.Errorf("%#x is not in the file %s", addr, c.lib.mapping.Path)
	}
	return nil
}

// enter makes the probes of a function.
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
		if later, ok := n.beside(c, body, addr); ok {
			at = later
		}
	}
	if inLoop(at) || !keeps(at) {
		at = addr
	}
	if !keeps(at) {
		return errors.New("its first instruction cannot have a probe: the kernel would take it for another one, or refuses it")
	}
	if inLoop(at) {
		return errors.New("its first instruction is that of a loop: its entries cannot be told from rounds")
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
			return fmt.Errorf("its returns cannot be found (%w), and a return probe would kill a program that throws an exception through it: leave the letter of the result out, its entries can be told", err)
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

// beside returns a place for the probe of a function that is as good as its first
// instruction and costs less, with all arguments where they were. What these point to may
// have changed by then.
func (n *FunctionProbe) beside(c *code, body []byte, addr uint64) (uint64, bool) {
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

// branchTarget returns the size of an instruction at the start of code that only marks
// it as the target of indirect calls: to have the probe behind it is cheaper, as most
// others are emulated.
func branchTarget(code []byte) uint64 {
	if len(code) > 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3]&0xfe == 0xfa { // endbr64, endbr32
		return 4
	}
	return 0
}
