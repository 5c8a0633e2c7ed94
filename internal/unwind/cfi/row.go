package cfi

// How says how the value that a register had in the caller is found.
type How uint8

// The ways to find a register.
const (
	// Unset: nothing was said. The registers that a function must preserve by
	// the ABI have the same value then, the stack pointer is the CFA, and the
	// others are lost.
	Unset How = iota
	// Undefined: the value is lost. Where the return address is undefined, the
	// stack ends.
	Undefined
	// SameValue: the register was not changed.
	SameValue
	// AtCFA: the value is saved at the address CFA+Offset.
	AtCFA
	// CFAOffset: the value is CFA+Offset.
	CFAOffset
	// Register: the value is in the register Reg.
	Register
	// AtExpression: the value is saved at the address that Expr computes, with
	// the CFA on its stack at first.
	AtExpression
	// Expression: the value is what Expr computes, with the CFA on its stack
	// at first.
	Expression
)

// Rule says where the caller's value of one register is.
type Rule struct {
	How    How
	Reg    uint8
	Offset int64  // bytes
	Expr   []byte // a DWARF expression, part of the section
}

// CFA says what the canonical frame address is: the value of the stack pointer
// in the caller, before the call.
type CFA struct {
	Expr   []byte // computes it, on an empty stack; nil: it is Reg+Offset
	Reg    uint8
	Offset int64 // bytes
}

// Row holds for the addresses [Start, End).
type Row struct {
	Start, End uint64
	CFA        CFA
	Rules      [Registers]Rule
	// SignedRA says that the return address carries a signature (arm64) where
	// it is saved.
	SignedRA bool
	// Signal says that the frame was not left by a call: the return address
	// of the frame is the next instruction itself, not the one after a call.
	Signal bool
}

// Rows calls yield for each row of the function, in ascending order without
// gaps from Start to End. The row is borrowed until yield returns. An error of
// yield ends it and is returned as it is; a *trace.SyntaxError says that the
// instructions are broken, after the rows before that place were yielded.
func (f *FDE) Rows(yield func(*Row) error) error {
	row := &Row{Signal: f.CIE.Signal}
	in := newInterpreter(f.CIE.section.Machine, row.Rules[:])
	return in.Run(f, func(s *Span) error {
		row.Start, row.End, row.CFA, row.SignedRA = s.Start, s.End, s.CFA, s.SignedRA
		return yield(row)
	})
}

// RowAt returns the row that holds at pc. It is false if there is none: pc is
// outside of the function.
func (f *FDE) RowAt(pc uint64) (Row, error) {
	var found Row
	err := f.Rows(func(r *Row) error {
		if pc >= r.Start && pc < r.End {
			found = *r
			return errFound
		}
		return nil
	})
	switch err {
	case errFound:
		return found, nil
	case nil:
		return Row{}, ErrNoRow
	}
	return Row{}, err
}
