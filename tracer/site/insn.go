package site

import "fmt"

// machine decodes one instruction set.
type machine interface {
	// decode reads the instruction at the start of code, which is at address
	// pc. The size of what it cannot decode is 0.
	decode(code []byte, pc uint64) insn
	// branchAt reads code as a branch whose target is in the instruction,
	// without having to know that an instruction starts there.
	branchAt(code []byte, pc uint64) (kind kind, target uint64, ok bool)
	// addr reduces an address to the width of the instruction pointer.
	addr(a uint64) uint64
	// step is how far to go on behind code that cannot be decoded.
	step() int
	// text returns the instruction at the start of code in assembler syntax.
	text(code []byte, pc uint64) string
	// arguments are the places of the integer arguments, as [Place] numbers
	// them.
	arguments() []uint8
	// result is the register of an integer result.
	result() uint8
	// frame is the frame pointer register.
	frame() uint8
	// readable is the set of places that a probe can read.
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

// kind says how an instruction goes on.
type kind uint8

const (
	plain   kind = iota // to the next one, with known effects
	unknown             // not known, or effects not modelled
	cond                // to the next one or the target
	jump                // to the target
	call                // to the target, and perhaps back
	leave               // elsewhere: return, indirect jump, trap
)

// insn is an instruction as far as the search for a site needs it.
type insn struct {
	size   int
	kind   kind
	cost   Cost
	hint   bool   // does nothing: nop, endbr64, endbr32, bti
	direct bool   // target is known
	open   bool   // a jump whose target is not: in a register, or in memory
	target uint64 // of a branch, if direct
	slot   uint64 // where the target is read from: jmp *slot(%rip), jmp *slot

	returns bool // to the caller
	calls   bool // of kind leave: comes back
	traps   bool // ends the way
	zero    zeroBranch
	fx      effects
}

// zeroBranch says whether a conditional branch is taken exactly if a register
// is zero.
type zeroBranch struct {
	kind zeroKind
	reg  uint8
}

type zeroKind uint8

const (
	notZero   zeroKind = iota // some other condition
	flagsZero                 // the flags say equal: je, b.eq
	regZero                   // reg is zero: cbz
)

// effects are what a plain instruction does to the state that is tracked.
// Whatever register is in none of its lists keeps its value.
type effects struct {
	kill  uint32 // registers whose new value is not known
	sets  [2]set // registers whose new value is; made from the old values
	nsets int

	stack     int  // bytes by which the stack pointer decreases
	stackLost bool // the stack pointer changes in a way not followed
	stores    bool // memory is written other than by a push
	mem       memoryOperand

	flags    bool // the flags change
	test     bool // ... and then say whether testReg is zero
	testReg  uint8
	linkRead bool // arm64: the link register is used, so perhaps saved
	linkSet  bool // arm64: the link register changes, or is signed
}

type setKind uint8

const (
	copyOf setKind = iota
	productOf
	addressOf // mem.disp behind the address in a
)

// set is a result. Its operands are registers or inMemory.
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
