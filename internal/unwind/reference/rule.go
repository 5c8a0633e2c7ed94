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
		// A frame-pointer step led here. The frame pointer leads to where the caller's
		// was saved (AAPCS64, frame records).
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

// caller returns the caller's registers but for the pc. A register without a
// rule keeps its value, as the ABIs say of the callee-saved ones; for others
// that is no worse, since only code that knows a register to be kept finds its
// frame by it. A register whose saved value cannot be read or is unknown becomes
// unknown: most are never needed.
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

// kept says whether a rule is none or that the register was not changed.
func kept(rule *cfi.Rule) bool { return rule.How == cfi.Unset || rule.How == cfi.SameValue }

// returnAddress returns where the caller goes on, as register column has it.
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

// unsigned removes the signature from a return address of arm64: it is in the
// bits above those of an address but for bit 55, of which all are a copy
// otherwise.
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

// word returns the word at the address that a sum leads to.
func (f *frame) word(sum uint64) (uint64, error) {
	addr := f.machine.wrap(sum)
	v, ok := narrow(f.mem, addr, f.machine.word)
	if !ok {
		return 0, fmt.Errorf("word at %#x: %w", addr, errUnreadable)
	}
	return v, nil
}
