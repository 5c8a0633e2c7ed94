package plan

import (
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/tracer/site"
)

// look sets the probe of a value at addr. from and end are the bounds of the function there,
// if known.
func (n *FunctionProbe) look(c *code, addr, from, end uint64, known bool) error {
	if !known || addr >= end {
		return fmt.Errorf("no function of %[2]s contains %#[1]x, according to its symbols and call frame information", addr, c.lib.mapping.Path)
	}
	if !site.Begins(c.machine.Arch, c.text.between(from, end), from, addr) {
		return fmt.Errorf("no instruction begins at %#x of %s", addr, c.lib.mapping.Path)
	}
	if !site.Keeps(c.machine.Arch, c.text.between(addr, end), addr) {
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
	body := c.text.between(addr, end)
	branches := site.Direct(c.machine.Arch, body, addr)
	n.Ways.Jumps = slices.ContainsFunc(branches, func(b site.Branch) bool { return !b.Call && (b.To < addr || b.To >= end) })
	at := addr + branchTarget(body)
	inLoop := func(at uint64) bool {
		return slices.ContainsFunc(branches, func(b site.Branch) bool { return !b.Call && b.To == at })
	}
	keeps := func(at uint64) bool { return site.Keeps(c.machine.Arch, c.text.between(at, c.text.end()), at) }
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
		Entry: addr, Code: c.text.bytes, Base: c.text.base,
		Bounds: func(addr uint64) (uint64, bool) {
			_, end, ok := c.bounds.around(addr)
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
