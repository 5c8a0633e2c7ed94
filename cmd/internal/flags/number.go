package flags

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// Number returns a value for whole numbers from least to most. Its initial value may be
// outside that range.
func Number(p *int, first, least, most int) pflag.Value {
	*p = first
	return &bounded{p, least, most}
}

type bounded struct {
	p           *int
	least, most int
}

var _ pflag.Value = (*bounded)(nil)

// Set parses a number.
func (b *bounded) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < b.least || n > b.most {
		wrong := ValueError{Wrong: "not a whole number", Write: fmt.Sprintf("one from %d to %d", b.least, b.most)}
		if b.most == Unbounded {
			wrong.Write = fmt.Sprintf("one from %d on", b.least)
		}
		if err == nil {
			wrong.Wrong = "the number is too large"
			if n < b.least {
				wrong.Wrong = "the number is too small"
			}
		}
		return &wrong
	}
	*b.p = n
	return nil
}

// Unbounded is the upper bound of numbers without one.
const Unbounded = 1<<31 - 1

// String returns the number.
func (b *bounded) String() string {
	if b.p == nil {
		return "0"
	}
	return strconv.Itoa(*b.p)
}

// Type is the kind of value for pflag.
func (b *bounded) Type() string { return "int" }
