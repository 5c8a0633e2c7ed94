package tracer

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"rtrace-bpf/tracer/site"
)

// Function is a traced function with its probes.
type Function struct {
	Name    string   // canonical name, as traces spell it
	Aliases []string // other names of the same code
	Probe   Probe
	Returns bool // a return probe sits on the same site
	Site    site.Site

	row  *row
	addr uint64 // in the file
}

// Probe is a place for a breakpoint.
type Probe struct {
	Function string
	Path     string // file, as the process names it
	File     string // the same, to be opened from here
	Offset   uint64 // in the file
	site     uint64 // packed for the programs, see bpf/records.h; 0 where they need nothing
	distance uint64 // from the start of the page where the allocator's code begins
}

// chooseFunctions finds the functions of the memory module in the library and
// a site in each.
func (p *Plan) chooseFunctions(lib *library) error {
	byAddress := map[uint64]int{}
	for i := range memoryModule {
		r := &memoryModule[i]
		sym, ok := lib.file.Defined(r.symbol)
		if !ok {
			continue
		}
		if at, ok := byAddress[sym.Addr]; ok {
			p.functions[at].Aliases = append(p.functions[at].Aliases, r.symbol)
			continue
		}
		byAddress[sym.Addr] = len(p.functions)
		p.functions = append(p.functions, Function{Name: r.symbol, row: r, Returns: r.returns(), addr: sym.Addr})
	}
	c, err := newCode(p.target.machine, lib, p.functions)
	if err != nil {
		return err
	}
	for i := range p.functions {
		if err := p.chooseSite(c, i); err != nil {
			return err
		}
	}
	if p.options.HeapGrowth {
		p.chooseGrowths(c)
	}
	m := &lib.mapping
	p.target.lib = fileID{m.major, m.minor, m.inode}
	p.target.code, p.internal = c.extent(), c.internal()
	return nil
}

// chooseSite finds where the i-th function is probed.
func (p *Plan) chooseSite(c *code, i int) error {
	fn := &p.functions[i]
	body, err := c.body(fn.Name)
	if err != nil {
		return err
	}
	f := site.Function{
		Name: fn.Name, Entry: fn.addr, Code: body, IFunc: c.lib.file.IFunc(fn.addr),
		Args: fn.row.arguments(), Return: fn.Returns, SkipNull: fn.row.operation == opFree,
		Incoming: c.branches, Target: c.target, Slot: c.slot,
	}
	if fn.row.count != none {
		f.Factors = [2]int{fn.row.size, fn.row.count}
	}
	if fn.Site, err = site.Choose(c.sites(), f); err != nil {
		return err
	}
	path := c.lib.mapping.path
	offset, ok := c.lib.file.FileOffset(fn.Site.Addr)
	if !ok {
		return fmt.Errorf("%s in %s is at %#x, which is not in the file", fn.Name, path, fn.Site.Addr)
	}
	fn.Probe = Probe{Function: fn.Name, Path: path, File: c.lib.path, Offset: offset}
	fn.Probe.distance = c.distance(fn.Site.Addr)
	fn.Probe.site = fn.pack(i, c.machine.word) | fn.Probe.distance/uint64(os.Getpagesize())<<40
	return nil
}

// pack describes the site as the programs read it, given the bytes of a word: see
// bpf/records.h, SITE_FUNCTION and its neighbours.
func (f *Function) pack(number int, word uint64) uint64 {
	place := func(arg int) (reg uint64, product bool) {
		if arg == none {
			return site.NoReg, false
		}
		x := f.Site.Args[slices.Index(f.row.arguments(), arg)]
		return uint64(x.Reg), x.Product
	}
	size, product := place(f.row.size)
	count, _ := place(f.row.count)
	if product {
		count = site.NoReg
	}
	block, _ := place(f.row.block)
	packed := uint64(number) | uint64(f.row.operation)<<10 | size<<14 | count<<19 | block<<24 |
		uint64(f.Site.StackAdjust)/word<<29
	if len(f.Site.TailCalls) > 0 {
		packed |= 1 << 37
	}
	// A jump on overflow tests the flag that the multiplication has left.
	if product && strings.HasPrefix(f.Site.Insn, "jo ") {
		packed |= 1 << 38
	}
	return packed
}
