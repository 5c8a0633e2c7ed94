package cfi

// How is how to find the value that a register had in the caller.
type How uint8

// The ways to find a register.
const (
	// Unset: there is no rule. By the ABI, the registers that a function must preserve then
	// have the same value, the stack pointer is the CFA, and the others are lost.
	Unset How = iota
	// Undefined: the value is lost. If the return address is undefined, the stack ends.
	Undefined
	// SameValue: the register was not changed.
	SameValue
	// AtCFA: the value is saved at the address CFA+Offset.
	AtCFA
	// CFAOffset: the value is CFA+Offset.
	CFAOffset
	// Register: the value is in the register Reg.
	Register
	// AtExpression: the value is saved at the address that Expr computes. The expression starts
	// with the CFA on its stack.
	AtExpression
	// Expression: the value is what Expr computes. The expression starts with the CFA on its
	// stack.
	Expression
)

// Rule is how to find the caller's value of one register.
type Rule struct {
	How    How
	Reg    uint8
	Offset int64  // bytes
	Expr   []byte // a DWARF expression, part of the section
}

// CFA is how to compute the canonical frame address: the value of the stack pointer in the
// caller before the call.
type CFA struct {
	Expr   []byte // computes it, starting with an empty stack; nil: the CFA is Reg+Offset
	Reg    uint8
	Offset int64 // bytes
}

// Row is what applies at the addresses [Start, End).
type Row struct {
	Start, End uint64
	CFA        CFA
	Rules      [Registers]Rule
	// SignedRA reports that the saved return address is signed (arm64).
	SignedRA bool
	// Signal reports that the frame was interrupted by a signal: its return address is the next
	// instruction itself, not the one after a call.
	Signal bool
}

// Rows calls yield for each row of the function, in ascending order without gaps from Start to
// End. The row is valid until yield returns. Rows stops at an error of yield and returns it
// unchanged. If the instructions are broken, Rows yields the rows before that place and returns
// a *trace.SyntaxError.
func (f *FDE) Rows(yield func(*Row) error) error {
	row := &Row{Signal: f.CIE.Signal}
	in := newInterpreter(f.CIE.section.Machine, row.Rules[:])
	return in.Run(f, func(s *Span) error {
		row.Start, row.End, row.CFA, row.SignedRA = s.Start, s.End, s.CFA, s.SignedRA
		return yield(row)
	})
}

// RowAt returns the row that applies at pc. The error is ErrNoRow if pc is outside of the
// function.
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
