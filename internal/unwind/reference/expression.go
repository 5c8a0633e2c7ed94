package reference

import (
	"encoding/binary"
	"errors"
	"fmt"

	"rtrace-bpf/trace"
)

// Limits of one expression. Compilers' expressions have some ten operations and few stack
// entries; libgcc allows 64 entries.
const (
	maxOperations = 1024
	maxEntries    = 64
)

// Reasons why a well-formed rule has no value.
var (
	errUnreadable = errors.New("memory could not be read")
	errUnknown    = errors.New("register is unknown")
)

// evaluator executes a DWARF expression (DWARF 5, section 2.5). All values have the generic
// type, a word of the machine, as call frame information requires (section 6.4.2). After the
// first failure, further operations have no effect.
type evaluator struct {
	code  []byte
	at    int // offset of the next byte
	start int // offset of the current operation
	stack [maxEntries]uint64
	depth int
	err   error

	regs    *Registers
	mem     Memory
	machine *machine
	bias    uint64 // of the module, added to addresses in the expression
}

// evaluate executes code on a stack that holds initial and returns the top entry. Malformed
// code results in a *trace.SyntaxError with the offset in code.
func (f *frame) evaluate(code []byte, initial ...uint64) (uint64, error) {
	e := evaluator{code: code, regs: &f.regs, mem: f.mem, machine: f.machine, bias: f.module.Bias}
	e.depth = copy(e.stack[:], initial)
	for n := 0; e.at < len(code) && e.err == nil; n++ {
		if n == maxOperations {
			e.fail(trace.ErrLimit, "operations")
			break
		}
		e.start = e.at
		e.execute(e.u8())
	}
	e.start = e.at
	v := e.pop()
	return v, e.err
}

// fail records that the expression is malformed.
func (e *evaluator) fail(kind error, what string) {
	if e.err == nil {
		e.err = &trace.SyntaxError{Format: "DWARF expression", Offset: int64(e.start), Err: fmt.Errorf("%s: %w", what, kind)}
	}
}

// miss records that a value is missing.
func (e *evaluator) miss(err error, format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("DWARF expression: "+format+": %w", append(args, err)...)
	}
}

func (e *evaluator) push(v uint64) {
	if e.depth == maxEntries {
		e.fail(trace.ErrLimit, "stack entries")
		return
	}
	e.stack[e.depth] = e.machine.wrap(v)
	e.depth++
}

func (e *evaluator) pop() uint64 {
	if e.depth == 0 {
		e.fail(trace.ErrMalformed, "no stack entry")
		return 0
	}
	e.depth--
	return e.stack[e.depth]
}

// pick pushes a copy of the entry below n others.
func (e *evaluator) pick(n int) {
	if n >= e.depth {
		e.fail(trace.ErrMalformed, "no stack entry")
		return
	}
	e.push(e.stack[e.depth-1-n])
}

// bytes returns the next n bytes of the code.
func (e *evaluator) bytes(n int) []byte {
	if n > len(e.code)-e.at {
		e.fail(trace.ErrTruncated, "operand")
		return make([]byte, 8)[:n]
	}
	b := e.code[e.at : e.at+n]
	e.at += n
	return b
}

func (e *evaluator) u8() uint8   { return e.bytes(1)[0] }
func (e *evaluator) u16() uint16 { return binary.LittleEndian.Uint16(e.bytes(2)) }
func (e *evaluator) u32() uint32 { return binary.LittleEndian.Uint32(e.bytes(4)) }
func (e *evaluator) u64() uint64 { return binary.LittleEndian.Uint64(e.bytes(8)) }

// address reads an address of the machine.
func (e *evaluator) address() uint64 {
	if e.machine.word == 4 {
		return uint64(e.u32())
	}
	return e.u64()
}

// uleb reads an unsigned LEB128 number.
func (e *evaluator) uleb() uint64 {
	v, n := binary.Uvarint(e.code[e.at:])
	switch {
	case n == 0:
		e.fail(trace.ErrTruncated, "LEB128")
		return 0
	case n < 0:
		e.fail(trace.ErrLimit, "LEB128")
		return 0
	}
	e.at += n
	return v
}

// sleb reads a signed LEB128 number.
func (e *evaluator) sleb() uint64 {
	var v uint64
	for shift := 0; shift < 70; shift += 7 {
		b := e.u8()
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			if b&0x40 != 0 {
				v |= ^uint64(0) << (shift + 7)
			}
			return v
		}
	}
	e.fail(trace.ErrLimit, "LEB128")
	return 0
}

// register returns register n plus an offset.
func (e *evaluator) register(n, offset uint64) {
	v, ok := e.regs.Get(n)
	if !ok {
		e.miss(errUnknown, "%d", n)
	}
	e.push(v + offset)
}

// deref replaces an address by the n bytes there.
func (e *evaluator) deref(n uint) {
	addr := e.pop()
	if n < 1 || n > e.machine.word {
		e.fail(trace.ErrMalformed, "size of a value")
		return
	}
	if e.err != nil {
		return
	}
	v, ok := narrow(e.mem, addr, n)
	if !ok {
		e.miss(errUnreadable, "%d bytes at %#x", n, addr)
	}
	e.push(v)
}

// skip moves by the signed 16-bit operand if shall is true.
func (e *evaluator) skip(shall bool) {
	to := int(int16(e.u16())) + e.at
	if !shall {
		return
	}
	if to < 0 || to > len(e.code) {
		e.fail(trace.ErrMalformed, "branch out of the expression")
		return
	}
	e.at = to
}
