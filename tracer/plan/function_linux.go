package plan

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
)

// Function is a traced function with its probes.
type Function struct {
	Name    string   // canonical name, as traces spell it
	Aliases []string // other names of the same code
	Probe   Probe    // at the entry
	Returns bool     // a return probe sits on the same site
	Exits   []Probe  // on return instructions, in place of a return probe; shared ones belong to one function
	Jumps   []Probe  // on jumps to other traced functions
	Site    site.Site

	row            *Row
	addr           uint64 // in the file
	size           uint64 // bytes of code; 0 if unknown
	ifunc          bool
	optional       bool // it can be left out if it cannot be probed
	wholeArguments bool // its events have all its arguments
	wraps          bool // it may call the same function of another allocator
	calls          bool // it may call, by name, a function that another allocator serves

	exits     bool      // its return instructions are probed
	exitCost  site.Cost // of the most expensive of them
	ambiguous bool      // see leaveOutAmbiguous
}

// Probe is a place for a breakpoint.
type Probe struct {
	Function string
	Path     string         // the file, as the process names it
	File     string         // the same file, as this process can open it
	Offset   uint64         // in the file
	ID       process.FileID // of the file, as the process has it mapped
	Site     uint64         // packed for the BPF programs, see bpf/records.h; 0 if they need nothing
	text     int            // index in Target.Texts of the code that it is in
	Distance uint64         // bytes from the start of the page where that code begins
}

// chooseFunctions finds the functions of the traced allocators in a file and a site in each,
// and adds the code to Target.Texts. It returns the file's operators that give their names to
// calls of these functions.
func (p *Plan) chooseFunctions(lib *library) (namingOperators, error) {
	functions, own := p.functionsOf(lib), []Function(nil)
	if p.hasOwnOperators(lib.id()) {
		functions, own = p.ownOperators(lib, functions)
	}
	c, err := newCode(p.Target.Machine, lib, len(p.Target.Texts), slices.Concat(functions, own))
	if err != nil {
		return namingOperators{}, err
	}
	counting, naming := p.sortOperators(c, functions, own)
	functions = append(functions, counting...)
	for i := range functions {
		at := len(p.functions)
		p.functions = append(p.functions, functions[i])
		switch err := p.chooseSite(c, at); {
		case err != nil && functions[i].optional:
			p.Options.Warnf("%s of %s is not traced: %v", functions[i].Name, lib.mapping.Path, err)
			p.functions = p.functions[:at]
		case err != nil:
			return namingOperators{}, err
		case p.functions[at].freesElsewhere():
			p.functions = p.functions[:at]
		}
	}
	if p.Options.HeapGrowth {
		p.chooseGrowths(c, functions)
	}
	p.Target.Texts = append(p.Target.Texts, process.ProbedText{File: lib.id(), Base: c.base, Code: c.extent()})
	p.internal = append(p.internal, c.internal()...)
	return namingOperators{code: c, operators: naming}, nil
}

// freesElsewhere reports whether a free only jumps to another probed function. A free counts
// at its entry, so with a probe on both it would count twice.
func (f *Function) freesElsewhere() bool {
	return f.row.operation == opFree && f.Site.Thunk != nil && len(f.Site.TailCalls) > 0
}

// chooseSite finds where the i-th function is probed, and packs the site.
func (p *Plan) chooseSite(c *code, i int) error {
	fn := &p.functions[i]
	if err := c.choose(fn); err != nil {
		return err
	}
	fn.Probe.Site = fn.pack(i, c.machine.Word) | fn.flow(c.tails(fn)) |
		fn.Probe.Distance/uint64(os.Getpagesize())<<40 | uint64(c.number)<<62
	return nil
}

// choose finds where a function is probed. It sets fn.Site and fn.Probe, except for the
// packed site.
func (c *code) choose(fn *Function) error {
	f, err := c.describe(fn)
	if err != nil {
		return err
	}
	fn.Site, err = site.Choose(c.sites(), f)
	if err != nil && fn.wholeArguments { // with fewer arguments there may be a site
		fn.wholeArguments = false
		return c.choose(fn)
	}
	if err != nil {
		return err
	}
	probe, ok := c.probe(fn.Name, fn.Site.Addr)
	if !ok {
		return fmt.Errorf("%s in %s is at %#x, which is not in the file", fn.Name, probe.Path, fn.Site.Addr)
	}
	fn.Probe = probe
	return nil
}

// describe returns a function's description for package site.
func (c *code) describe(fn *Function) (site.Function, error) {
	body, err := c.body(fn)
	if err != nil {
		return site.Function{}, err
	}
	f := site.Function{
		Name: fn.Name, Entry: fn.addr, Code: body, IFunc: fn.ifunc,
		Args: fn.arguments(), Return: fn.Returns, SkipNull: fn.row.operation == opFree && !fn.opens(),
		Incoming: c.branches, Target: c.target, Slot: c.slot,
	}
	if fn.row.count != none && !fn.wholeArguments {
		f.Factors = [2]int{fn.row.size, fn.row.count}
	}
	return f, nil
}

// pack returns the function's number and its site as the BPF programs read them: see
// SITE_FUNCTION and its neighbours in bpf/records.h. word is the bytes of a word.
func (f *Function) pack(number int, word uint64) uint64 {
	place := func(arg int) (reg uint64, product bool) {
		if arg == none {
			return site.NoReg, false
		}
		x := f.Site.Args[slices.Index(f.arguments(), arg)]
		return uint64(x.Reg), x.Product
	}
	size, product := place(f.row.size)
	count, _ := place(f.row.count)
	if product {
		count = site.NoReg
	}
	block, _ := place(f.row.block)
	packed := uint64(number) | uint64(f.row.operation)<<10 | size<<14 | block<<24 |
		uint64(f.Site.StackAdjust)/word<<29
	if f.wholeArguments && f.row.alignment != 0 {
		count, _ = place(f.row.alignment - 1)
		packed |= 1 << 38
	}
	packed |= count << 19
	// The site is a jump on overflow: the multiplication before it has set the flag.
	if product && strings.HasPrefix(f.Site.Insn, "jo ") {
		packed |= 1 << 38
	}
	return packed
}

// opens reports whether the function frees and its calls are open until they return. Then
// the probe must also see calls that have nothing to free.
func (f *Function) opens() bool {
	return f.row.operation == opFree && (f.Returns || f.exits)
}

// flow returns the part of a packed site that describes how the function's calls go on.
// tails is the result of code.tails.
func (f *Function) flow(tails bool) uint64 {
	var packed uint64
	if tails && !f.exits { // with exits, the program hand_over sees these jumps
		packed |= 1 << 37
	}
	if f.exits {
		packed |= 1 << 39
	}
	if f.wraps || f.calls {
		packed |= 1 << 59
	}
	if f.opens() {
		packed |= 1 << 60
	}
	if slices.Contains(f.Site.TailCalls, f.Name) {
		packed |= 1 << 61
	}
	return packed
}
