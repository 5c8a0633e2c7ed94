package cover

import (
	"errors"
	"math/rand/v2"

	"golang.org/x/arch/x86/x86asm"
)

// cpu runs a function of x86-64 with random memory, and with called functions that return random
// values. It shares nothing with the interpretation but the decoder x86asm.
type cpu struct {
	image  *Image
	random *rand.Rand
	regs   [16]uint64
	pc     uint64
	flags  uint64
	frame  map[uint64]byte // the stack
	memory map[uint64]uint64
	decode map[uint64]x86asm.Inst
	calls  func(target uint64) Callee
}

// The stack is where nothing else is.
const (
	stackTop  = 0x7fff_ffff_0000
	stackLow  = stackTop - 1<<16
	returnsTo = 0x1234_5678_9abc
)

var (
	errUnknown = errors.New("an instruction that the model does not know")
	errEnds    = errors.New("the call does not return")
)

// value returns a random value of the kind that allocators compare.
func (c *cpu) value() uint64 {
	switch c.random.IntN(4) {
	case 0:
		return 0
	case 1:
		return uint64(c.random.IntN(64))
	}
	return c.random.Uint64() &^ 15 >> 20
}

func (c *cpu) load(addr uint64, size int) uint64 {
	var v uint64
	for i := range uint64(size) {
		v |= uint64(c.byte(addr+i)) << (8 * i)
	}
	return v
}

func (c *cpu) byte(addr uint64) byte {
	if addr >= stackLow && addr < stackTop+4096 {
		if b, ok := c.frame[addr]; ok {
			return b
		}
		c.frame[addr] = byte(c.random.Uint32())
		return c.frame[addr]
	}
	w, ok := c.memory[addr&^7]
	if !ok {
		w = c.value()
		c.memory[addr&^7] = w
	}
	return byte(w >> (8 * (addr & 7)))
}

func (c *cpu) store(addr uint64, size int, v uint64) {
	for i := range uint64(size) {
		a, b := addr+i, byte(v>>(8*i))
		if a >= stackLow && a < stackTop+4096 {
			c.frame[a] = b
			continue
		}
		c.byte(a) // fills the word
		w := c.memory[a&^7]&^(0xff<<(8*(a&7))) | uint64(b)<<(8*(a&7))
		c.memory[a&^7] = w
	}
}

// register returns the number, size in bytes and shift of a register.
func (c *cpu) register(r x86asm.Reg) (n, size, shift int, ok bool) {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX), 8, 0, true
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX), 4, 0, true
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX), 2, 0, true
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL), 1, 0, true
	case r >= x86asm.AH && r <= x86asm.BH:
		return int(r - x86asm.AH), 1, 8, true
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return int(r-x86asm.SPB) + 4, 1, 0, true
	}
	return 0, 0, 0, false
}

func (c *cpu) address(m x86asm.Mem, after uint64) uint64 {
	a := uint64(m.Disp)
	if m.Base == x86asm.RIP {
		a += after
	} else if n, _, _, ok := c.register(m.Base); ok && m.Base != 0 {
		a += c.regs[n]
	}
	if n, _, _, ok := c.register(m.Index); ok && m.Index != 0 {
		a += c.regs[n] * uint64(m.Scale)
	}
	if m.Segment == x86asm.FS || m.Segment == x86asm.GS {
		a += 0x6000_0000_0000
	}
	return a
}

// get returns an operand and its size in bytes; 0 if the model does not know it.
func (c *cpu) get(x *x86asm.Inst, a x86asm.Arg) (uint64, int) {
	switch a := a.(type) {
	case x86asm.Reg:
		if n, size, shift, ok := c.register(a); ok {
			return truncate(c.regs[n]>>shift, size), size
		}
	case x86asm.Imm:
		return uint64(a), 8
	case x86asm.Mem:
		if x.MemBytes > 0 && x.MemBytes <= 8 {
			return c.load(c.address(a, c.pc+uint64(x.Len)), x.MemBytes), x.MemBytes
		}
	}
	return 0, 0
}

func truncate(v uint64, size int) uint64 {
	if size >= 8 {
		return v
	}
	return v & (1<<(8*size) - 1)
}

func (c *cpu) set(x *x86asm.Inst, a x86asm.Arg, v uint64) error {
	switch a := a.(type) {
	case x86asm.Reg:
		n, size, shift, ok := c.register(a)
		if !ok {
			return errUnknown
		}
		switch size {
		case 8:
			c.regs[n] = v
		case 4:
			c.regs[n] = uint64(uint32(v))
		default:
			mask := uint64(1<<(8*size)-1) << shift
			c.regs[n] = c.regs[n]&^mask | v<<shift&mask
		}
		return nil
	case x86asm.Mem:
		c.store(c.address(a, c.pc+uint64(x.Len)), x.MemBytes, v)
		return nil
	}
	return errUnknown
}

// result sets the flags that show a result; the others are given.
func (c *cpu) result(v uint64, size int, carry, overflow bool) {
	v = truncate(v, size)
	c.flags = 0
	set := func(bit uint64, on bool) {
		if on {
			c.flags |= bit
		}
	}
	set(0x40, v == 0)
	set(0x80, v>>(8*size-1)&1 == 1)
	set(1, carry)
	set(0x800, overflow)
	ones := 0
	for i := range 8 {
		ones += int(v >> i & 1)
	}
	set(4, ones%2 == 0)
}

// step carries out one instruction. It returns errEnds where the call ends without a return.
func (c *cpu) step() error {
	x, ok := c.decode[c.pc]
	if !ok {
		code := c.image.at(c.pc)
		if code == nil {
			return errUnknown
		}
		var err error
		if x, err = x86asm.Decode(code[:min(15, len(code))], 64); err != nil || x.Op == 0 {
			return errUnknown
		}
		c.decode[c.pc] = x
	}
	done, err := c.flow(&x)
	if err != nil || done {
		return err
	}
	if err := c.execute(&x); err != nil {
		return err
	}
	c.pc += uint64(x.Len)
	return nil
}

// flow carries out branches.
func (c *cpu) flow(x *x86asm.Inst) (done bool, err error) {
	after := c.pc + uint64(x.Len)
	rel, isRel := x.Args[0].(x86asm.Rel)
	target := after + uint64(int64(rel))
	switch {
	case x.Op == x86asm.UD2 || x.Op == x86asm.HLT:
		return false, errEnds
	case x.Op == x86asm.RET && x.Args[0] == nil:
		c.pc = c.load(c.regs[4], 8)
		c.regs[4] += 8
		return true, nil
	case x.Op == x86asm.JMP && isRel:
		c.pc = target
		return true, nil
	case x.Op == x86asm.CALL && isRel:
		callee := c.calls(target)
		if callee.NoReturn {
			return false, errEnds
		}
		c.called(callee)
		c.pc = after
		return true, nil
	case x.Op == x86asm.JMP || x.Op == x86asm.CALL:
		return false, errUnknown
	case isRel:
		code := c.image.at(c.pc)
		opcode := code[0]
		if opcode == 0x0f {
			opcode = code[1] - 0x10
		}
		if opcode&0xf0 != 0x70 {
			return false, errUnknown
		}
		c.pc = after
		if jumps(opcode&0xf, c.flags) {
			c.pc = target
		}
		return true, nil
	}
	return false, nil
}

// called does what a function may do: it changes the registers and the memory that it owns.
func (c *cpu) called(callee Callee) {
	first := c.regs[7]
	for _, n := range []int{0, 1, 2, 6, 7, 8, 9, 10, 11} {
		c.regs[n] = c.random.Uint64()
	}
	c.flags = c.random.Uint64() & 0x8c5
	c.regs[0] = c.value()
	if callee.First {
		c.regs[0] = first
	}
	for a := range c.frame {
		if a < c.regs[4] {
			delete(c.frame, a)
		}
	}
	clear(c.memory)
}

// execute carries out instructions that are not branches.
func (c *cpu) execute(x *x86asm.Inst) error {
	for _, p := range x.Prefix {
		if p &^= x86asm.PrefixImplicit | x86asm.PrefixIgnored; p == x86asm.PrefixREP || p == x86asm.PrefixREPN {
			return errUnknown
		}
	}
	a, size := c.get(x, x.Args[0])
	b, bSize := uint64(0), 8
	if x.Args[1] != nil {
		b, bSize = c.get(x, x.Args[1])
	}
	switch x.Op {
	case x86asm.NOP, x86asm.PREFETCHT0, x86asm.PREFETCHW:
		return nil
	case x86asm.LEA:
		return c.set(x, x.Args[0], c.address(x.Args[1].(x86asm.Mem), c.pc+uint64(x.Len)))
	case x86asm.PUSH:
		c.regs[4] -= 8
		c.store(c.regs[4], 8, a)
		return check(size == 8)
	case x86asm.POP:
		v := c.load(c.regs[4], 8)
		c.regs[4] += 8
		return errors.Join(c.set(x, x.Args[0], v), check(size == 8))
	case x86asm.MUL:
		return c.multiply(a, size)
	}
	if size == 0 || bSize == 0 {
		return errUnknown
	}
	return c.arithmetic(x, a, truncate(b, size), size)
}

func check(ok bool) error {
	if !ok {
		return errUnknown
	}
	return nil
}

func (c *cpu) multiply(a uint64, size int) error {
	if size != 8 {
		return errUnknown
	}
	high, low := mul64(c.regs[0], a)
	c.regs[0], c.regs[2] = low, high
	c.flags = c.random.Uint64() & 0xc4
	if high != 0 {
		c.flags |= 0x801
	}
	return nil
}

// mul64 multiplies by halves.
func mul64(x, y uint64) (high, low uint64) {
	x0, x1, y0, y1 := x&0xffff_ffff, x>>32, y&0xffff_ffff, y>>32
	w := x0 * y0
	t := x1*y0 + w>>32
	u := t&0xffff_ffff + x0*y1
	return x1*y1 + t>>32 + u>>32, x * y
}

func (c *cpu) arithmetic(x *x86asm.Inst, a, b uint64, size int) error {
	top := uint(8*size - 1)
	sign := func(v uint64) bool { return v>>top&1 == 1 }
	dst := x.Args[0]
	switch x.Op {
	case x86asm.MOV, x86asm.MOVZX:
		return c.set(x, dst, b)
	case x86asm.ADD:
		v := truncate(a+b, size)
		c.result(v, size, v < a, sign(a) == sign(b) && sign(v) != sign(a))
		return c.set(x, dst, v)
	case x86asm.SUB, x86asm.CMP:
		v := truncate(a-b, size)
		c.result(v, size, a < b, sign(a) != sign(b) && sign(v) != sign(a))
		if x.Op == x86asm.CMP {
			return nil
		}
		return c.set(x, dst, v)
	case x86asm.AND, x86asm.OR, x86asm.XOR, x86asm.TEST:
		v := map[x86asm.Op]uint64{x86asm.AND: a & b, x86asm.OR: a | b, x86asm.XOR: a ^ b, x86asm.TEST: a & b}[x.Op]
		c.result(v, size, false, false)
		if x.Op == x86asm.TEST {
			return nil
		}
		return c.set(x, dst, v)
	case x86asm.SHL, x86asm.SHR:
		n := b & 31
		if size == 8 {
			n = b & 63
		}
		if n == 0 {
			return nil
		}
		v := a >> n
		if x.Op == x86asm.SHL {
			v = truncate(a<<n, size)
		}
		c.result(v, size, c.random.IntN(2) == 0, c.random.IntN(2) == 0)
		return c.set(x, dst, v)
	case x86asm.NEG:
		c.result(-a, size, a != 0, truncate(a, size) == 1<<top)
		return c.set(x, dst, truncate(-a, size))
	case x86asm.XCHG:
		if err := c.set(x, dst, b); err != nil {
			return err
		}
		return c.set(x, x.Args[1], a)
	case x86asm.CMPXCHG:
		acc := truncate(c.regs[0], size)
		c.result(acc-a, size, acc < a, false)
		if acc == a {
			return c.set(x, dst, b)
		}
		return c.set(x, map[int]x86asm.Reg{4: x86asm.EAX, 8: x86asm.RAX}[size], a)
	}
	return c.conditional(x, b)
}
