package cover

import "golang.org/x/arch/x86/x86asm"

// conditional carries out cmovcc and setcc.
func (c *cpu) conditional(x *x86asm.Inst, b uint64) error {
	code := c.image.at(c.pc)
	for i := range x.Len - 1 {
		if code[i] != 0x0f {
			continue
		}
		holds := jumps(code[i+1]&0xf, c.flags)
		switch code[i+1] & 0xf0 {
		case 0x40:
			v, _ := c.get(x, x.Args[0])
			if holds {
				v = b
			}
			return c.set(x, x.Args[0], v)
		case 0x90:
			v := uint64(0)
			if holds {
				v = 1
			}
			return c.set(x, x.Args[0], v)
		}
		break
	}
	return errUnknown
}

// jumps reports whether a conditional jump is taken: Intel's manual, volume 2, Jcc.
func jumps(code byte, flags uint64) bool {
	cf, pf, zf, sf, of := flags&1 != 0, flags&4 != 0, flags&0x40 != 0, flags&0x80 != 0, flags&0x800 != 0
	return [...]bool{
		of, !of, cf, !cf, zf, !zf, cf || zf, !cf && !zf,
		sf, !sf, pf, !pf, sf != of, sf == of, zf || sf != of, !zf && sf == of,
	}[code]
}
