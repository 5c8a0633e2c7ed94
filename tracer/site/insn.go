package site

import "fmt"

// machine decodes one instruction set.
type machine interface {
	// decode decodes the instruction at the start of code, which is at address pc. Size 0 means
	// that it cannot be decoded.
	decode(code []byte, pc uint64) insn
	// branchAt reads code as a branch whose target is in the instruction, whether or not an
	// instruction starts there.
	branchAt(code []byte, pc uint64) (kind kind, target uint64, ok bool)
	// addr reduces an address to the width of the instruction pointer.
	addr(a uint64) uint64
	// step is how many bytes to skip where code cannot be decoded.
	step() int
	// text returns the instruction at the start of code in assembler syntax.
	text(code []byte, pc uint64) string
	// arguments returns the places of the integer arguments, numbered as in [Place].
	arguments() []uint8
	// result returns the register of an integer result.
	result() uint8
	// frame returns the frame pointer register.
	frame() uint8
	// readable returns the set of places that a probe can read.
	readable() uint32
}

func machineOf(o Options) (machine, error) {
	switch o.Arch {
	case AMD64:
		return x86{o, 64}, nil
	case I386:
		return x86{o, 32}, nil
	case ARM64:
		return arm64{o}, nil
	}
	return nil, fmt.Errorf("%v is not supported", o.Arch)
}

// kind is where execution continues after an instruction.
type kind uint8

const (
	plain   kind = iota // to the next one, with known effects
	unknown             // unknown instruction, or effects not modelled
	cond                // to the next one or the target
	jump                // to the target
	call                // to the target, and perhaps back
	leave               // elsewhere: return, indirect jump, trap
)

// insn is an instruction, as far as the search for a site needs it.
type insn struct {
	size   int
	kind   kind
	cost   Cost
	hint   bool   // does nothing: nop, endbr64, endbr32, bti
	direct bool   // the target is known
	open   bool   // a jump whose target is in a register or in memory
	target uint64 // of a branch, if direct
	slot   uint64 // address that the target is read from: jmp *slot(%rip), jmp *slot

	returns bool // to the caller
	calls   bool // with kind leave: execution comes back
	traps   bool // execution ends here
	zero    zeroBranch
	fx      effects
}

// zeroBranch is a condition under which a branch is taken exactly if a register is zero.
type zeroBranch struct {
	kind zeroKind
	reg  uint8
}

type zeroKind uint8

const (
	notZero   zeroKind = iota // some other condition
	flagsZero                 // the flags mean equal: je, b.eq
	regZero                   // reg is zero: cbz
)

// effects describes what a plain instruction does to the tracked state. A register in none of its
// lists keeps its value.
type effects struct {
	kill  uint32 // registers whose new value is unknown
	sets  [2]set // registers whose new value is known; computed from the old values
	nsets int

	stack     int  // bytes by which the stack pointer decreases
	stackLost bool // the stack pointer changes in a way that is not tracked
	stores    bool // memory is written, other than by a push
	mem       memoryOperand

	flags    bool // the flags change
	test     bool // ... and then show whether testReg is zero
	testReg  uint8
	linkRead bool // arm64: the link register is used, so perhaps saved
	linkSet  bool // arm64: the link register changes, or is signed
}

type setKind uint8

const (
	copyOf setKind = iota
	productOf
	addressOf // mem.disp above the address in a
)

// set assigns a result to a register. Its operands are registers or inMemory.
type set struct {
	kind setKind
	dst  uint8
	a, b uint8 // sources
}

func (fx *effects) killReg(r uint8) {
	fx.kill |= 1 << (r & 31)
}

func (fx *effects) set(kind setKind, dst, a, b uint8) {
	if fx.nsets < len(fx.sets) {
		fx.sets[fx.nsets] = set{kind, dst, a, b}
		fx.nsets++
	}
	fx.killReg(dst)
}
