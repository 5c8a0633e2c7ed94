package reference

import (
	"errors"
	"fmt"

	"rtrace-bpf/internal/unwind/cfi"
)

// cfa returns the canonical frame address.
func (f *frame) cfa(row *cfi.Row) (uint64, error) {
	if row.CFA.Expr != nil {
		return f.evaluate(row.CFA.Expr)
	}
	base, ok := f.regs.Get(uint64(row.CFA.Reg))
	if !ok && uint64(row.CFA.Reg) == f.machine.sp {
		// A frame-pointer step led here. The frame pointer points to the caller's saved one
		// (AAPCS64, frame records).
		saved := &row.Rules[f.machine.fp]
		if fp, ok := f.regs.Get(f.machine.fp); ok && saved.How == cfi.AtCFA {
			return fp - uint64(saved.Offset), nil
		}
	}
	if !ok {
		return 0, fmt.Errorf("base %d: %w", row.CFA.Reg, errUnknown)
	}
	return f.machine.wrap(base + uint64(row.CFA.Offset)), nil
}

// caller returns the caller's registers except the pc. A register without a rule keeps its
// value, as the ABIs require of callee-saved registers. For others this does no harm, because
// only code that keeps a register finds its frame through it. A register whose saved value is
// unknown or cannot be read becomes unknown; most are never needed.
func (f *frame) caller(row *cfi.Row, cfa uint64) (Registers, error) {
	m := f.machine
	caller := f.regs
	caller.Set(m.sp, cfa)
	for n := range uint64(cfi.Registers) {
		rule := &row.Rules[n]
		if n == m.pc || kept(rule) {
			continue
		}
		v, err := f.value(rule, n, cfa)
		switch {
		case err == nil:
			caller.Set(n, v)
		case errors.Is(err, errUnreadable), errors.Is(err, errUnknown):
			caller.Forget(n)
		default:
			return Registers{}, fmt.Errorf("register %d: %w", n, err)
		}
	}
	if _, ok := caller.Get(m.sp); !ok {
		return Registers{}, fmt.Errorf("stack pointer: %w", errUnknown)
	}
	return caller, nil
}

// kept reports whether a register has no rule or was not changed.
func kept(rule *cfi.Rule) bool { return rule.How == cfi.Unset || rule.How == cfi.SameValue }

// returnAddress returns where the caller continues, according to the rule of column.
func (f *frame) returnAddress(row *cfi.Row, column, cfa uint64) (uint64, error) {
	rule := &row.Rules[column]
	if column == f.machine.pc && kept(rule) {
		return 0, fmt.Errorf("return address: %w", errUnknown)
	}
	address, err := f.value(rule, column, cfa)
	if err != nil {
		return 0, fmt.Errorf("return address: %w", err)
	}
	if row.SignedRA {
		address = unsigned(address, f.options.addressBits())
	}
	if row.Signal {
		return address, nil
	}
	return f.throughTrampoline(address, cfa), nil
}

// unsigned removes the signature from a return address of arm64. The signature is in the bits
// above those of an address, except bit 55. Without a signature all these bits are copies of
// bit 55.
func unsigned(address uint64, bits int) uint64 {
	signature := ^uint64(0) << bits
	if address>>55&1 != 0 {
		return address | signature
	}
	return address &^ signature
}

// value returns the caller's value of register n.
func (f *frame) value(rule *cfi.Rule, n, cfa uint64) (uint64, error) {
	switch rule.How {
	case cfi.Unset, cfi.SameValue:
		return f.known(n)
	case cfi.Register:
		return f.known(uint64(rule.Reg))
	case cfi.AtCFA:
		return f.word(cfa + uint64(rule.Offset))
	case cfi.CFAOffset:
		return f.machine.wrap(cfa + uint64(rule.Offset)), nil
	case cfi.AtExpression:
		at, err := f.evaluate(rule.Expr, cfa)
		if err != nil {
			return 0, err
		}
		return f.word(at)
	case cfi.Expression:
		return f.evaluate(rule.Expr, cfa)
	}
	return 0, fmt.Errorf("register %d: %w", n, errUnknown)
}

func (f *frame) known(n uint64) (uint64, error) {
	v, ok := f.regs.Get(n)
	if !ok {
		return 0, fmt.Errorf("register %d: %w", n, errUnknown)
	}
	return v, nil
}

// word returns the word at an address, which wraps around.
func (f *frame) word(sum uint64) (uint64, error) {
	addr := f.machine.wrap(sum)
	v, ok := narrow(f.mem, addr, f.machine.word)
	if !ok {
		return 0, fmt.Errorf("word at %#x: %w", addr, errUnreadable)
	}
	return v, nil
}
