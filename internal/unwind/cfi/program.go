package cfi

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"rtrace-bpf/trace"
)

// The call frame instructions: DWARF 5, section 7.24, and those of GNU and Arm. The first three
// have an operand in their low six bits.
const (
	opAdvance = 0x1 << 6
	opOffset  = 0x2 << 6
	opRestore = 0x3 << 6
	opLow     = 0x3f

	opNop             = 0x00
	opSetLoc          = 0x01
	opAdvance1        = 0x02
	opAdvance2        = 0x03
	opAdvance4        = 0x04
	opOffsetExtended  = 0x05
	opRestoreExtended = 0x06
	opUndefined       = 0x07
	opSameValue       = 0x08
	opRegister        = 0x09
	opRememberState   = 0x0a
	opRestoreState    = 0x0b
	opDefCFA          = 0x0c
	opDefCFARegister  = 0x0d
	opDefCFAOffset    = 0x0e
	opDefCFAExpr      = 0x0f
	opExpression      = 0x10
	opOffsetSigned    = 0x11
	opDefCFASigned    = 0x12
	opDefCFAOffSigned = 0x13
	opValOffset       = 0x14
	opValOffsetSigned = 0x15
	opValExpression   = 0x16
	opNegateRAPC      = 0x2c // DW_CFA_AARCH64_negate_ra_state_with_pc
	opNegateRA        = 0x2d // DW_CFA_AARCH64_negate_ra_state, elsewhere GNU_window_save
	opArgsSize        = 0x2e // DW_CFA_GNU_args_size
	opNegativeOffset  = 0x2f // DW_CFA_GNU_negative_offset_extended
)

// maxInstructions is the most instructions of an FDE. A function of a megabyte has some ten
// thousand.
const maxInstructions = 1 << 20

// errPast reports that the end of the function was reached.
var errPast = errors.New("end of the function")

// program is one run of the instructions of an FDE or a CIE.
type program struct {
	in         *Interpreter
	cie        *CIE
	yield      func(*Span) error
	start, loc uint64 // of the current row
	end        uint64
	common     bool // the instructions are the CIE's
	stopped    bool // yield returned an error
}

func (p *program) run(c *cursor) error {
	for n := 0; c.at < c.end; n++ {
		if n == maxInstructions {
			return fmt.Errorf("instructions: %w", trace.ErrLimit)
		}
		var err error
		op := c.u8()
		switch op &^ opLow {
		case opAdvance:
			err = p.advance(uint64(op & opLow))
		case opOffset:
			p.save(uint64(op&opLow), int64(c.uleb()))
		case opRestore:
			err = p.restore(uint64(op & opLow))
		default:
			err = p.extended(op, c)
		}
		switch {
		case err != nil:
			return err
		case c.short:
			return fmt.Errorf("instruction %#x: %w", op, trace.ErrTruncated)
		}
	}
	return nil
}

// extended executes an instruction that has a byte of its own.
func (p *program) extended(op uint8, c *cursor) error {
	now := &p.in.now
	switch op {
	case opNop:
	case opSetLoc:
		return p.setLoc(c)
	case opAdvance1:
		return p.advance(c.uint(1))
	case opAdvance2:
		return p.advance(c.uint(2))
	case opAdvance4:
		return p.advance(c.uint(4))
	case opRememberState:
		return p.in.remember()
	case opRestoreState:
		return p.in.recall()
	case opDefCFA:
		return p.define(c.uleb(), int64(c.uleb()))
	case opDefCFASigned:
		return p.define(c.uleb(), c.sleb()*p.cie.DataAlign)
	case opDefCFARegister:
		return p.rebase(c.uleb())
	case opDefCFAOffset:
		return p.move(int64(c.uleb()))
	case opDefCFAOffSigned:
		return p.move(c.sleb() * p.cie.DataAlign)
	case opDefCFAExpr:
		now.cfa, now.isSet = CFA{Expr: expression(c)}, true
	case opNegateRA, opNegateRAPC:
		if p.in.machine != ARM64 {
			return fmt.Errorf("instruction %#x: %w", op, trace.ErrUnsupported)
		}
		now.signed = !now.signed
	case opArgsSize:
		c.uleb()
	default:
		return p.register(op, c)
	}
	return nil
}

// register executes an instruction that sets the rule of one register.
func (p *program) register(op uint8, c *cursor) error {
	reg := c.uleb()
	switch op {
	case opOffsetExtended:
		p.save(reg, int64(c.uleb()))
	case opOffsetSigned:
		p.save(reg, c.sleb())
	case opNegativeOffset:
		p.save(reg, -int64(c.uleb()))
	case opRestoreExtended:
		return p.restore(reg)
	case opUndefined:
		p.set(reg, Rule{How: Undefined})
	case opSameValue:
		p.set(reg, Rule{How: SameValue})
	case opValOffset:
		p.set(reg, Rule{How: CFAOffset, Offset: int64(c.uleb()) * p.cie.DataAlign})
	case opValOffsetSigned:
		p.set(reg, Rule{How: CFAOffset, Offset: c.sleb() * p.cie.DataAlign})
	case opRegister:
		return p.copy(reg, c.uleb())
	case opExpression:
		p.set(reg, Rule{How: AtExpression, Expr: expression(c)})
	case opValExpression:
		p.set(reg, Rule{How: Expression, Expr: expression(c)})
	default:
		return fmt.Errorf("instruction %#x: %w", op, trace.ErrUnsupported)
	}
	return nil
}

// expression reads a DWARF expression. The result is not nil even if it is empty.
func expression(c *cursor) []byte {
	if b := c.block(c.uleb()); b != nil {
		return b
	}
	return []byte{}
}

// set sets the rule of a register. It ignores registers that are not followed.
func (p *program) set(reg uint64, rule Rule) {
	if reg < none {
		if i := p.in.column[reg]; i != none {
			p.in.now.rules[i] = rule
		}
	}
}

func (p *program) save(reg uint64, offset int64) {
	p.set(reg, Rule{How: AtCFA, Offset: offset * p.cie.DataAlign})
}

func (p *program) copy(reg, from uint64) error {
	if from > math.MaxUint8 {
		return fmt.Errorf("value in register %d: %w", from, trace.ErrUnsupported)
	}
	p.set(reg, Rule{How: Register, Reg: uint8(from)})
	return nil
}

// restore sets a register's rule to the one from the CIE.
func (p *program) restore(reg uint64) error {
	if p.common {
		return fmt.Errorf("restore of a register without an initial rule: %w", trace.ErrMalformed)
	}
	if reg < none {
		if i := p.in.column[reg]; i != none {
			p.in.now.rules[i] = p.in.initial.rules[i]
		}
	}
	return nil
}

func (p *program) define(reg uint64, offset int64) error {
	if reg > math.MaxUint8 {
		return fmt.Errorf("frame address from register %d: %w", reg, trace.ErrUnsupported)
	}
	p.in.now.cfa, p.in.now.isSet = CFA{Reg: uint8(reg), Offset: offset}, true
	return nil
}

// rebase changes only the register of the CFA.
func (p *program) rebase(reg uint64) error {
	now := &p.in.now
	if !now.isSet || now.cfa.Expr != nil {
		return fmt.Errorf("no frame address to change: %w", trace.ErrMalformed)
	}
	return p.define(reg, now.cfa.Offset)
}

// move changes only the offset of the CFA.
func (p *program) move(offset int64) error {
	now := &p.in.now
	if !now.isSet || now.cfa.Expr != nil {
		return fmt.Errorf("no frame address to change: %w", trace.ErrMalformed)
	}
	now.cfa.Offset = offset
	return nil
}

func (p *program) setLoc(c *cursor) error {
	to := p.cie.section.pointer(c, p.cie.pointers)
	if to < p.loc {
		return fmt.Errorf("set_loc goes back: %w", trace.ErrMalformed)
	}
	return p.goTo(to)
}

func (p *program) advance(delta uint64) error {
	high, low := bits.Mul64(delta, p.cie.CodeAlign)
	if high != 0 || p.loc+low < p.loc {
		low = math.MaxUint64 - p.loc
	}
	return p.goTo(p.loc + low)
}

// goTo yields the current row, unless it is empty, and begins the next one.
func (p *program) goTo(to uint64) error {
	if p.common {
		return fmt.Errorf("advance: %w", trace.ErrMalformed)
	}
	p.loc = to
	if to < p.end {
		return p.emit(to)
	}
	if err := p.emit(p.end); err != nil {
		return err
	}
	return errPast
}

// emit yields the row that ends at the given address.
func (p *program) emit(end uint64) error {
	if end <= p.start {
		return nil
	}
	in := p.in
	if !in.now.isSet {
		return fmt.Errorf("no frame address: %w", trace.ErrMalformed)
	}
	in.span = Span{Start: p.start, End: end, CFA: in.now.cfa, Rules: in.now.rules, SignedRA: in.now.signed}
	p.start = end
	err := p.yield(&in.span)
	p.stopped = err != nil
	return err
}
