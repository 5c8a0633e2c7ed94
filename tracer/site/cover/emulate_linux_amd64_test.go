package cover

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/arch/x86/x86asm"
	"golang.org/x/sys/unix"
)

// registerX86Of returns a pointer to a general register.
func registerX86Of(r *unix.PtraceRegs, n uint8) *uint64 {
	return [...]*uint64{
		&r.Rax, &r.Rcx, &r.Rdx, &r.Rbx, &r.Rsp, &r.Rbp, &r.Rsi, &r.Rdi,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15,
	}[n]
}

// emulate carries out an instruction that was replaced by a breakpoint, as the kernel does: the
// instruction pointer is at it.
func (p *process) emulate(r *unix.PtraceRegs, code []byte) error {
	x, err := x86asm.Decode(code, 64)
	if err != nil {
		return err
	}
	push := func(v uint64) error {
		r.Rsp -= 8
		_, err := p.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, v), int64(r.Rsp))
		return err
	}
	after := r.Rip + uint64(x.Len)
	rel, isRel := x.Args[0].(x86asm.Rel)
	target := after + uint64(int64(rel))
	r.Rip = after
	opcode := code[0]
	if opcode == 0x0f {
		opcode = code[1] - 0x10
	}
	switch {
	case x.Op == x86asm.NOP:
	case x.Op == x86asm.PUSH:
		reg := x.Args[0].(x86asm.Reg)
		return push(*registerX86Of(r, uint8(reg-x86asm.RAX)))
	case x.Op == x86asm.CALL && isRel:
		r.Rip = target
		return push(after)
	case x.Op == x86asm.RET:
		to, err := p.word(r.Rsp)
		r.Rip = to
		r.Rsp += 8
		return err
	case x.Op == x86asm.JMP && !isRel:
		if reg, ok := x.Args[0].(x86asm.Reg); ok {
			r.Rip = *registerX86Of(r, uint8(reg-x86asm.RAX))
			return nil
		}
		m := x.Args[0].(x86asm.Mem)
		if m.Base != x86asm.RIP || m.Index != 0 {
			return fmt.Errorf("%v is not known", x)
		}
		var err error
		r.Rip, err = p.word(after + uint64(m.Disp))
		return err
	case x.Op == x86asm.JMP && isRel:
		r.Rip = target
	case isRel && opcode&0xf0 == 0x70:
		if jumps(opcode&0xf, r.Eflags) {
			r.Rip = target
		}
	default:
		return fmt.Errorf("%v is not an instruction that the kernel emulates", x)
	}
	return nil
}
