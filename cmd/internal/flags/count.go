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
	number, unit := text, uint64(1)
	if text != "" {
		if i := strings.IndexByte("KMG", text[len(text)-1]&^0x20); i >= 0 {
			number, unit = text[:len(text)-1], [...]uint64{1e3, 1e6, 1e9}[i]
		}
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n > (1<<63)/unit {
		f := forms[c.Type()]
		return &ValueError{Wrong: f.wrong, Write: f.write}
	}
	*c = Count(n * unit)
	return nil
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
