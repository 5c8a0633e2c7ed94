package flags

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Count is a number of things on the command line.
type Count uint64

var _ pflag.Value = (*Count)(nil)

// Set parses a number with an optional suffix k, M or G, powers of 1000.
func (c *Count) Set(text string) error {
	n, ok := scaled(text, 1000)
	if !ok {
		f := forms[c.Type()]
		return &ValueError{Wrong: f.wrong, Write: f.write}
	}
	*c = Count(n)
	return nil
}

// scaled parses a number with an optional suffix k, M or G, powers of base. It reports
// false for any other text, and for a number above 1<<63.
func scaled(text string, base uint64) (uint64, bool) {
	number, unit := text, uint64(1)
	if text != "" {
		if i := strings.IndexByte("KMG", text[len(text)-1]&^0x20); i >= 0 {
			number, unit = text[:len(text)-1], [...]uint64{base, base * base, base * base * base}[i]
		}
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return n * unit, err == nil && n <= (1<<63)/unit
}

// String returns the number, or "" for 0.
func (c *Count) String() string {
	if c == nil || *c == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*c), 10)
}

// Type is the name of the value in help texts that give none.
func (c *Count) Type() string { return "N" }
