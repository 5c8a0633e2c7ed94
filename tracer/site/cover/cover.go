package cover

import (
	"fmt"

	"rtrace-bpf/tracer/site"
)

// Callee is what is known about a function that is called or jumped to.
type Callee struct {
	NoReturn bool // it never returns: abort
	First    bool // it returns its first argument: memset
}

// Image is the code of a library.
type Image struct {
	Arch site.Arch
	Code []byte // of the executable segment; only read
	Base uint64 // virtual address of Code[0]

	// Direct has the branches of Code. If it is nil, they are read when they are needed.
	Direct *site.Library

	// Bounds returns the part of a function that contains addr, from the unwind tables or the
	// symbols. If it is nil or returns false, nothing is known about it.
	Bounds func(addr uint64) (start, end uint64, ok bool)

	// Callee returns what is known about the function at addr, which may be a PLT stub. If it is
	// nil or returns false, only the code shows something.
	Callee func(addr uint64) (Callee, bool)

	// Entered reports whether code outside of the library, or a pointer, may lead to addr: it is
	// an exported function, or its address is taken. If it is nil, no code that another function
	// could share is followed.
	Entered func(addr uint64) bool

	// Slot returns the function of the library to which the pointer at addr, an entry of the GOT,
	// leads. If it is nil or returns false, the pointer is unknown.
	Slot func(addr uint64) (function uint64, ok bool)
}

// Function is the function to cover. It must return a block or zero.
type Function struct {
	Name  string
	Entry uint64
	Args  []int // the arguments that an event needs, counted from zero

	// Factors holds two of Args of which only the product is needed. Equal indexes mean none.
	Factors [2]int
}

// Costs are the prices of what a plan is made of, in any unit. They are measured on the machine:
// virtual machines differ tenfold.
type Costs struct {
	Break  int // a breakpoint on an instruction that the kernel emulates
	Return int // a return probe, on top of its breakpoint
	// Step is the price of a breakpoint on an instruction that the kernel must single-step. Only
	// indirect jumps and returns can be such sites, where they are rare.
	Step int
}

// UsualCosts holds for KVM. The plans of glibc are the same with those of other machines.
var UsualCosts = Costs{Break: 100, Return: 55, Step: 3500}

// Role is what a hit of a site means.
type Role uint8

// The roles of a site.
const (
	// Report sites know the arguments and the block.
	Report Role = iota
	// Note sites know only the arguments. A call may pass several, which all note the same.
	Note
	// Finish sites know only the block. Each call that reaches one has passed a Note.
	Finish
	// Return sites know the arguments. The return address is on top of the stack (in the link
	// register on arm64), so a return probe can share the site. It reports what is not zero.
	Return
)

var roleNames = [...]string{"report", "note", "finish", "return"}

// String returns the name of the role.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// Place is where a value is when a site is hit: a register, or a word of the stack.
type Place struct {
	Reg    uint8 // as in [site.Place]
	Stack  bool  // the value is in the 8 bytes at Offset above the stack pointer, not in Reg
	Offset int

	// Product is set if the value is the product of the two [Function.Factors] modulo the range
	// of a register, instead of one argument.
	Product bool
}

// Site is a place for a probe. A Report or Finish counts only if its condition holds and the
// block is not 0.
type Site struct {
	Addr  uint64
	Insn  string // in the syntax of the GNU assembler
	Role  Role
	When  Condition // of the branch that the site is on
	Args  []Place   // in the order of Function.Args; nil at a Finish
	Block Place     // of Report and Finish

	// Stepped is set if the kernel must single-step the instruction.
	Stepped bool

	// Frame is where the frame pointer of the caller is. If that is not known, it is the register
	// [site.NoReg].
	Frame Place

	// Link is where the return address is, if the machine keeps it in a register at first; it may be
	// signed. If that is not known, or the machine has none, it is the register [site.NoReg].
	Link Place

	// StackAdjust is how many bytes the stack pointer is below its value at the function's entry.
	StackAdjust int
}

// Plan covers a function.
type Plan struct {
	Sites []Site // ascending
	// HotTraps is how many breakpoints the call hits that takes the likelier side of each branch,
	// and HotReturns how many of them have a return probe.
	HotTraps, HotReturns int
	// Calls holds the targets of the direct calls that a call can make, ascending, except for
	// calls that do not return and those after a Return site. Opaque is set if it can also call
	// through a pointer.
	Calls  []uint64
	Opaque bool
}

// Unproved is the error of [Find] for a function that cannot be covered.
type Unproved struct {
	Addr   uint64 // of the instruction that stopped the proof
	Insn   string
	Reason string
}

func (e *Unproved) Error() string {
	return fmt.Sprintf("%s: %q at %#x", e.Reason, e.Insn, e.Addr)
}

// Find returns the cheapest plan for f. If there is none, the error is an [Unproved].
func Find(im *Image, f Function, costs Costs) (*Plan, error) {
	return NewFinder(im).Find(f, costs)
}

// Finder finds plans for several functions of one image. What it found out about the code for one
// of them it uses for the others, so the code must not change.
type Finder struct {
	image *Image
	never map[numbers]bool // see callees
	first map[uint64]bool
	read  *site.Library // if the image has no branches
}

// NewFinder returns a finder for functions of im.
func NewFinder(im *Image) *Finder {
	return &Finder{image: im, never: map[numbers]bool{}, first: map[uint64]bool{}}
}

// library returns the branches of the code.
func (d *Finder) library() *site.Library {
	if d.image.Direct != nil {
		return d.image.Direct
	}
	if d.read == nil {
		d.read = site.NewLibrary(d.image.Arch, d.image.Code, d.image.Base)
	}
	return d.read
}

// Find returns the cheapest plan for f. If there is none, the error is an [Unproved].
func (d *Finder) Find(f Function, costs Costs) (*Plan, error) {
	plan, err := d.find(&f, costs)
	if err != nil {
		return nil, fmt.Errorf("cover %s: %w", f.Name, err)
	}
	return plan, nil
}

func (d *Finder) find(f *Function, costs Costs) (*Plan, error) {
	m, err := machineOf(d.image.Arch)
	if err != nil {
		return nil, err
	}
	g, err := d.interpret(m, f)
	if err != nil {
		return nil, err
	}
	g.trace()
	g.weigh()
	c := choice{graph: g, costs: costs}
	return c.plan()
}
