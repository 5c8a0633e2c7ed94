package flags

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// PID is the ID of a process on the command line; 0 for none.
type PID int

// PIDs are several IDs, separated by commas or from several flags.
type PIDs []int

var (
	_ pflag.Value = (*PID)(nil)
	_ pflag.Value = (*PIDs)(nil)
)

// Set parses a number.
func (p *PID) Set(text string) error {
	n, err := parsePID(text)
	if err == nil {
		*p = PID(n)
	}
	return err
}

// String returns the number, or "" for 0.
func (p *PID) String() string {
	if p == nil || *p == 0 {
		return ""
	}
	return strconv.Itoa(int(*p))
}

// Type is the kind of value for pflag.
func (p *PID) Type() string { return "PID" }

// Set adds processes.
func (p *PIDs) Set(text string) error {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := parsePID(strings.TrimSpace(part))
		if err != nil {
			if part == text && isName(part) {
				return &ValueError{Wrong: "not a process ID", Meant: "--comm " + part}
			}
			return err
		}
		all = append(all, n)
	}
	*p = append(*p, all...)
	return nil
}

// String returns the numbers.
func (p *PIDs) String() string {
	if p == nil {
		return ""
	}
	all := make([]string, len(*p))
	for i, n := range *p {
		all[i] = strconv.Itoa(n)
	}
	return strings.Join(all, ",")
}

// Type is the kind of value for pflag.
func (p *PIDs) Type() string { return "PID" }

func parsePID(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		f := forms["PID"]
		return 0, &ValueError{Wrong: f.wrong, Write: f.write}
	}
	return int(n), nil
}

// isName reports whether a text looks like the command name of a process.
func isName(text string) bool {
	return text != "" && strings.ContainsFunc(text, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }) &&
		!strings.ContainsAny(text, "/ \t") && text[0] != '-'
}
