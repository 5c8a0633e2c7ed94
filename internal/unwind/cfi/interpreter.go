package cfi

import (
	"errors"
	"fmt"

	"rtrace-bpf/trace"
)

// maxStates is how many states may be remembered at a time. Compilers nest two or three.
const maxStates = 64

// ErrNoRow reports that no row covers the address.
var ErrNoRow = errors.New("no call frame information for the address")

// errFound ends a search early.
var errFound = errors.New("found")

// Interpreter executes call frame instructions. It reuses its memory from one FDE to the next
// and follows only the registers that it was made for, so it is suitable for whole files.
type Interpreter struct {
	machine Machine
	column  [256]uint8 // maps a register to its index in the rules, or to none
	now     state
	initial state // after the CIE's instructions
	stack   []state
	depth   int
	cie     *CIE // the CIE of initial
	span    Span
}

// none marks a register that is not followed.
const none = 255

// Span is a row with rules for the registers of an [Interpreter], in the interpreter's order.
type Span struct {
	Start, End uint64
	CFA        CFA
	Rules      []Rule
	SignedRA   bool // see [Row]
}

// state is the state that instructions change.
type state struct {
	cfa    CFA
	isSet  bool // cfa was set
	signed bool
	rules  []Rule
}

func (s *state) assign(from *state) {
	rules := append(s.rules[:0], from.rules...)
	*s = *from
	s.rules = rules
}

// NewInterpreter returns an interpreter that follows the given registers.
func NewInterpreter(m Machine, registers ...uint8) *Interpreter {
	in := newInterpreter(m, make([]Rule, len(registers)))
	for i := range in.column {
		in.column[i] = none
	}
	for i, r := range registers {
		in.column[r] = uint8(i)
	}
	return in
}

// newInterpreter returns an interpreter that writes the rules of the first registers into the
// given slice.
func newInterpreter(m Machine, rules []Rule) *Interpreter {
	in := &Interpreter{machine: m, now: state{rules: rules}}
	for i := range in.column {
		in.column[i] = none
		if i < len(rules) {
			in.column[i] = uint8(i)
		}
	}
	return in
}

// Run calls yield for each row of the function, like [FDE.Rows]. The span is valid until yield
// returns.
func (in *Interpreter) Run(f *FDE, yield func(*Span) error) error {
	if f.Start == f.End {
		return nil
	}
	if err := in.begin(f.CIE); err != nil {
		return err
	}
	in.now.assign(&in.initial)
	in.depth = 0
	s := f.CIE.section
	p := program{in: in, cie: f.CIE, yield: yield, start: f.Start, loc: f.Start, end: f.End}
	err := p.run(&cursor{b: s.Data, at: f.at, end: f.at + len(f.Instructions), big: s.big()})
	if err == nil {
		err = p.emit(f.End)
	}
	switch {
	case err == errPast:
		return nil
	case err == nil || p.stopped:
		return err
	}
	return s.fail(f.Offset, err)
}

// begin executes the CIE's instructions, unless it did so for the previous FDE.
func (in *Interpreter) begin(cie *CIE) error {
	if in.cie == cie {
		return nil
	}
	in.cie = nil
	clear(in.now.rules)
	in.now = state{rules: in.now.rules}
	in.depth = 0
	p := program{in: in, cie: cie, common: true}
	s := cie.section
	if err := p.run(&cursor{b: s.Data, at: cie.at, end: cie.at + len(cie.Initial), big: s.big()}); err != nil {
		return s.fail(cie.Offset, fmt.Errorf("common entry: %w", err))
	}
	in.initial.assign(&in.now)
	in.cie = cie
	return nil
}

// remember saves the state.
func (in *Interpreter) remember() error {
	if in.depth == maxStates {
		return fmt.Errorf("remembered states: %w", trace.ErrLimit)
	}
	if in.depth == len(in.stack) {
		in.stack = append(in.stack, state{})
	}
	in.stack[in.depth].assign(&in.now)
	in.depth++
	return nil
}

// recall restores the state that was saved last.
func (in *Interpreter) recall() error {
	if in.depth == 0 {
		return fmt.Errorf("no remembered state: %w", trace.ErrMalformed)
	}
	in.depth--
	in.now.assign(&in.stack[in.depth])
	return nil
}
