package cover

import "fmt"

// Condition is a condition on the registers at a site.
type Condition struct {
	Kind CondKind
	// Code is the condition code of the machine: the low four bits of the opcode on x86, the
	// cond field on arm64.
	Code uint8
	Reg  uint8 // of RegZero and BitSet
	Bit  uint8 // of BitSet; for RegZero the width of the register in bits
	Not  bool  // the condition is inverted
}

// CondKind is the kind of a [Condition].
type CondKind uint8

// The kinds of conditions.
const (
	Always  CondKind = iota
	Flags            // the flags fulfil Code
	RegZero          // the low Bit bits of Reg are zero
	BitSet           // bit Bit of Reg is one
)

// Bits of the flags register of x86.
const (
	flagCarry    = 1 << 0
	flagParity   = 1 << 2
	flagZero     = 1 << 6
	flagSign     = 1 << 7
	flagOverflow = 1 << 11
)

// Holds reports whether the condition holds with these registers and flags. Flags are those of
// the architecture: eflags on x86, the NZCV bits 31 to 28 on arm64.
func (c Condition) Holds(arm bool, flags uint64, reg func(n uint8) uint64) bool {
	var is bool
	switch c.Kind {
	case Always:
		is = true
	case Flags:
		if arm {
			is = holdsARM64(c.Code, flags)
		} else {
			is = holdsX86(c.Code, flags)
		}
	case RegZero:
		is = reg(c.Reg)<<(64-c.Bit) == 0
	case BitSet:
		is = reg(c.Reg)>>c.Bit&1 == 1
	}
	return is != c.Not
}

func holdsX86(code uint8, flags uint64) bool {
	var is bool
	less := flags&flagSign != 0 != (flags&flagOverflow != 0)
	switch code >> 1 & 7 {
	case 0:
		is = flags&flagOverflow != 0
	case 1:
		is = flags&flagCarry != 0
	case 2:
		is = flags&flagZero != 0
	case 3:
		is = flags&(flagCarry|flagZero) != 0
	case 4:
		is = flags&flagSign != 0
	case 5:
		is = flags&flagParity != 0
	case 6:
		is = less
	case 7:
		is = less || flags&flagZero != 0
	}
	return is != (code&1 == 1)
}

func holdsARM64(code uint8, flags uint64) bool {
	n, z, c, v := flags>>31&1 == 1, flags>>30&1 == 1, flags>>29&1 == 1, flags>>28&1 == 1
	var is bool
	switch code >> 1 & 7 {
	case 0:
		is = z
	case 1:
		is = c
	case 2:
		is = n
	case 3:
		is = v
	case 4:
		is = c && !z
	case 5:
		is = n == v
	case 6:
		is = n == v && !z
	case 7:
		return true
	}
	return is != (code&1 == 1)
}

// String describes the condition.
func (c Condition) String() string {
	switch c.Kind {
	case Flags:
		code := c.Code
		if c.Not {
			code ^= 1
		}
		return fmt.Sprintf("flags %d", code)
	case RegZero:
		if c.Not {
			return fmt.Sprintf("r%d != 0", c.Reg)
		}
		return fmt.Sprintf("r%d == 0", c.Reg)
	case BitSet:
		return fmt.Sprintf("bit %d of r%d, inverted %v", c.Bit, c.Reg, c.Not)
	}
	return "always"
}
