package flags

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// plainly says in the user's words what is wrong with a flag's value, where
// the library passes on what the functions of Go that parse numbers say, and of
// a flag that is refused nothing but why.
func plainly(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		name := "--" + bad.GetFlag().Name
		if short := bad.GetFlag().Shorthand; short != "" {
			name = "-" + short + ", " + name
		}
		return fmt.Errorf("%s: %w", name, refused)
	}
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	flag, takes := bad.GetFlag(), ""
	switch flag.Value.Type() {
	case "bool":
		takes = "yes or no, as true or false"
	case "float32", "float64":
		takes = "a number"
	case "uint", "uint8", "uint16", "uint32", "uint64":
		takes = "a whole number that is not negative"
	case "int", "int8", "int16", "int32", "int64", "count":
		takes = "a whole number"
	default:
		return err // lists and other types tell which of the parts is wrong
	}
	if errors.Is(number, strconv.ErrRange) {
		takes += " that is not so large"
	}
	return fmt.Errorf("--%s takes %s, not %q", flag.Name, takes, bad.GetValue())
}
