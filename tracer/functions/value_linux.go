package functions

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is a value that is read when a thread reaches a place.
type Value struct {
	Place
	ID       uint32 // in the messages
	Size     uint32 // in bytes
	Register string
	// Adds has a number for each pointer that is followed from the register to the value; it is
	// added to the pointer first. If Adds is empty, the value is that of the register.
	Adds []int64
}

const maxSteps = len(functionsCallSite{}.Add)

// ParseValue parses LIB:SYM+0xOFFSET@ID=EXPR/SIZE. EXPR is a register, or [EXPR], [EXPR+N] or
// [EXPR-N] for the contents of memory.
func ParseValue(text string) (v Value, err error) {
	wrong := func(format string, args ...any) (Value, error) {
		return Value{}, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, args...))
	}
	// Parse from the end, because names may contain any of these characters, as in operator/=.
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return wrong("no /SIZE: write LIB:SYM+0xOFFSET@ID=EXPR/SIZE, as :work+0x1c@7=[rdi+8]/4")
	}
	size, err := strconv.ParseUint(text[slash+1:], 10, 32)
	if err != nil || size == 0 || size > uint64(MaxValue) {
		return wrong("the size %q is not a number from 1 to %d", text[slash+1:], MaxValue)
	}
	equal := strings.LastIndexByte(text[:slash], '=')
	at := strings.LastIndexByte(text[:max(equal, 0)], '@')
	if at < 0 {
		return wrong("no @ID=EXPR: write LIB:SYM+0xOFFSET@ID=EXPR/SIZE, as :work+0x1c@7=[rdi+8]/4")
	}
	id, err := strconv.ParseUint(text[at+1:equal], 10, 32)
	if err != nil {
		return wrong("the number %q is not one from 0 to %d", text[at+1:equal], uint32(math.MaxUint32))
	}
	v.ID, v.Size = uint32(id), uint32(size)
	if v.Place, err = parsePlace(text[:at]); err != nil {
		return wrong("%v", err)
	}
	if err := v.parseExpression(text[equal+1 : slash]); err != nil {
		return wrong("%v", err)
	}
	return v, nil
}

var errExpression = errors.New("a value is a register, as rdi, or what is in memory, as [rdi+8] or [[rdi]-0x10]")

// parseExpression parses a register within brackets.
func (v *Value) parseExpression(text string) error {
	inner := strings.TrimLeft(text, "[")
	depth := len(text) - len(inner)
	if depth > maxSteps {
		return fmt.Errorf("more than %d pointers lead to the value", maxSteps)
	}
	parts := strings.Split(inner, "]")
	if len(parts) != depth+1 || parts[depth] != "" && depth > 0 {
		return errExpression
	}
	register, _, _ := strings.Cut(strings.Replace(parts[0], "-", "+", 1), "+")
	v.Register = register
	if register == "" {
		return errExpression
	}
	if depth == 0 {
		if register != inner {
			return errExpression
		}
		return nil
	}
	parts[0] = parts[0][len(register):]
	for _, part := range parts[:depth] {
		var n int64
		if part != "" {
			if part[0] != '+' && part[0] != '-' {
				return errExpression
			}
			var err error
			if n, err = strconv.ParseInt(part, 0, 64); err != nil {
				return fmt.Errorf("%q is not a number of bytes", part)
			}
		}
		v.Adds = append(v.Adds, n)
	}
	return nil
}

// Check returns an error if the value is invalid for programs of this kind.
func (v *Value) Check(narrow bool) error {
	if _, ok := register(v.Register, narrow); !ok {
		return fmt.Errorf("%s: unknown register %q of these programs (known: %s)", v.Place, v.Register, registerNames(narrow))
	}
	if word := wordBytes(narrow); len(v.Adds) == 0 && v.Size > word {
		return fmt.Errorf("%s: a register has %d bytes, not %d", v.Place, word, v.Size)
	}
	return nil
}

func wordBytes(narrow bool) uint32 {
	if narrow {
		return 4
	}
	return 8
}
