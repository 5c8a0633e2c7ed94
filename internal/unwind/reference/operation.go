package reference

import (
	"fmt"

	"rtrace-bpf/trace"
)

// Operations of DWARF 5, section 7.7.1, that may occur in call frame information. Operations
// that need a debugging entry (calls, types, objects) may not.
const (
	opAddr       = 0x03
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst1s    = 0x09
	opConst2u    = 0x0a
	opConst2s    = 0x0b
	opConst4u    = 0x0c
	opConst4s    = 0x0d
	opConst8u    = 0x0e
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opRot        = 0x17
	opAbs        = 0x19
	opAnd        = 0x1a
	opDiv        = 0x1b
	opMinus      = 0x1c
	opMod        = 0x1d
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opGt         = 0x2b
	opLe         = 0x2c
	opLt         = 0x2d
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opLit31      = 0x4f
	opBreg0      = 0x70
	opBreg31     = 0x8f
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

// execute executes one operation.
func (e *evaluator) execute(op uint8) {
	switch {
	case op >= opLit0 && op <= opLit31:
		e.push(uint64(op - opLit0))
	case op >= opBreg0 && op <= opBreg31:
		e.register(uint64(op-opBreg0), e.sleb())
	case op >= opAddr && op <= opConsts && op != opDeref:
		e.constant(op)
	case op >= opDup && op <= opRot:
		e.shuffle(op)
	case op == opAbs || op == opNeg || op == opNot || op == opPlusUconst:
		e.unary(op)
	case op >= opAnd && op <= opXor || op >= opEq && op <= opNe:
		e.binary(op)
	default:
		e.other(op)
	}
}

func (e *evaluator) other(op uint8) {
	switch op {
	case opDeref:
		e.deref(e.machine.word)
	case opDerefSize:
		e.deref(uint(e.u8()))
	case opBregx:
		n := e.uleb()
		e.register(n, e.sleb())
	case opSkip:
		e.skip(true)
	case opBra:
		shall := e.pop() != 0
		e.skip(shall)
	case opNop:
	default:
		e.fail(trace.ErrUnsupported, fmt.Sprintf("operation %#02x", op))
	}
}

func (e *evaluator) constant(op uint8) {
	switch op {
	case opAddr:
		e.push(e.address() + e.bias)
	case opConst1u:
		e.push(uint64(e.u8()))
	case opConst1s:
		e.push(uint64(int8(e.u8())))
	case opConst2u:
		e.push(uint64(e.u16()))
	case opConst2s:
		e.push(uint64(int16(e.u16())))
	case opConst4u:
		e.push(uint64(e.u32()))
	case opConst4s:
		e.push(uint64(int32(e.u32())))
	case opConst8u, opConst8s:
		e.push(e.u64())
	case opConstu:
		e.push(e.uleb())
	case opConsts:
		e.push(e.sleb())
	default:
		e.fail(trace.ErrUnsupported, fmt.Sprintf("operation %#02x", op))
	}
}

func (e *evaluator) shuffle(op uint8) {
	switch op {
	case opDup:
		e.pick(0)
	case opDrop:
		e.pop()
	case opOver:
		e.pick(1)
	case opPick:
		e.pick(int(e.u8()))
	case opSwap:
		top, second := e.pop(), e.pop()
		e.push(top)
		e.push(second)
	case opRot: // the top entry moves below the two others
		top, second, third := e.pop(), e.pop(), e.pop()
		e.push(top)
		e.push(third)
		e.push(second)
	}
}

func (e *evaluator) unary(op uint8) {
	v := e.pop()
	switch op {
	case opAbs:
		if e.machine.signed(v) < 0 {
			v = -v
		}
	case opNeg:
		v = -v
	case opNot:
		v = ^v
	case opPlusUconst:
		v += e.uleb()
	}
	e.push(v)
}

// binary executes an operation on two entries. Division and comparison are signed, the
// remainder is unsigned, as section 2.5.1.4 requires for the generic type and as in libgcc.
func (e *evaluator) binary(op uint8) {
	b, a := e.pop(), e.pop()
	if b == 0 && (op == opDiv || op == opMod) {
		e.fail(trace.ErrMalformed, "division by zero")
		return
	}
	switch op {
	case opAnd:
		e.push(a & b)
	case opDiv:
		e.push(uint64(e.machine.signed(a) / e.machine.signed(b)))
	case opMinus:
		e.push(a - b)
	case opMod:
		e.push(a % b)
	case opMul:
		e.push(a * b)
	case opOr:
		e.push(a | b)
	case opPlus:
		e.push(a + b)
	case opShl:
		e.push(a << b)
	case opShr:
		e.push(a >> b)
	case opShra:
		e.push(uint64(e.machine.signed(a) >> b))
	case opXor:
		e.push(a ^ b)
	default:
		e.push(compare(op, e.machine.signed(a), e.machine.signed(b)))
	}
}

func compare(op uint8, a, b int64) uint64 {
	yes := false
	switch op {
	case opEq:
		yes = a == b
	case opGe:
		yes = a >= b
	case opGt:
		yes = a > b
	case opLe:
		yes = a <= b
	case opLt:
		yes = a < b
	case opNe:
		yes = a != b
	}
	if yes {
		return 1
	}
	return 0
}
