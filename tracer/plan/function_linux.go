package plan

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/site"
)

// Function is a traced function with its probes.
type Function struct {
	Name    string   // canonical name, as traces spell it
	Aliases []string // other names of the same code
	Probe   Probe    // at the entry
	Returns bool     // a return probe sits on the same site
	Site    site.Site

	row            *Row
	symbol         symbol.Symbol // where it is in the file
	ends           *ends         // nil unless its return instructions are probed
	paths          paths         // the sites inside it, if they take the place of entry and return
	optional       bool          // it can be left out if it cannot be probed
	wholeArguments bool          // its events have all its arguments
	known          bool          // it belongs to a known allocator
	wraps          bool          // it may call the same function of another allocator
	calls          bool          // it may call, by name, a function that another allocator serves
	ambiguous      bool          // see leaveOutAmbiguous
}

// freesElsewhere reports whether a free only jumps to another probed function. A free counts
// at its entry, so with a probe on both it would count twice.
func (f *Function) freesElsewhere() bool {
	return f.row.operation == opFree && f.Site.Thunk != nil && len(f.Site.TailCalls) > 0
}

// arguments lists the arguments that the function's probe must read.
func (f *Function) arguments() []int {
	args := f.row.arguments()
	if f.wholeArguments && f.row.alignment != 0 {
		args = append(args, f.row.alignment-1)
	}
	return args
}

// chooseNumbered finds where a function is probed, and packs the site with the function's
// number.
func (c *code) chooseNumbered(fn *Function, number int) error {
	if err := c.choose(fn); err != nil {
		return err
	}
	fn.Probe.Site = fn.pack(number, c.machine.Word) | fn.flow(c.tails(fn)) |
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
		Name: fn.Name, Entry: fn.symbol.Addr, Code: body, IFunc: fn.symbol.IFunc,
		Args: fn.arguments(), Return: fn.Returns, SkipNull: fn.row.operation == opFree && !fn.opens(),
		Incoming: c.branches, Target: c.links.target, Slot: c.links.slot,
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
	return f.row.operation == opFree && (f.Returns || f.ends != nil)
}

// flow returns the part of a packed site that describes how the function's calls go on.
// tails is the result of code.tails.
func (f *Function) flow(tails bool) uint64 {
	var packed uint64
	if tails && f.ends == nil { // with ends, the program hand_over sees these jumps
		packed |= 1 << 37
	}
	if f.ends != nil {
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
