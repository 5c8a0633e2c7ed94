package flags

import (
	"strconv"

	"github.com/spf13/pflag"
)

// Size is a number of bytes on the command line.
type Size uint64

var _ pflag.Value = (*Size)(nil)

// Set parses a number with an optional suffix K, M or G, powers of 1024.
func (s *Size) Set(text string) error {
	n, ok := scaled(text, 1024)
	if !ok {
		f := forms[s.Type()]
		return &ValueError{Wrong: f.wrong, Write: f.write}
	}
	*s = Size(n)
	return nil
}

// String returns the number of bytes, or "" for 0.
func (s *Size) String() string {
	if s == nil || *s == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// Text returns the size with the largest suffix that is exact, such as 8M.
func (s *Size) Text() string {
	n, unit := *s, ""
	for _, next := range []string{"K", "M", "G"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, next
	}
	return strconv.FormatUint(uint64(n), 10) + unit
}

// Type is the name of the value in help texts that give none.
func (s *Size) Type() string { return "BYTES" }
