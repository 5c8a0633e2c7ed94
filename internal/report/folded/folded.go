// Package folded writes profiles as folded stacks, which flamegraph.pl and many
// viewers read: on each line the functions from the outermost to the innermost
// with ; between them, a blank, and a number.
package folded

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
)

// Write writes one value of a profile. Stacks that have none of it are left out,
// and those that read the same are one line. Lines are in the order of their
// bytes. It does not close w.
func Write(w io.Writer, p *stacks.Profile, v stacks.Value) error {
	sums := make(map[string]uint64)
	var line []byte
	for i := range p.Samples {
		s := &p.Samples[i]
		n := v.Of(&s.Usage)
		if n == 0 {
			continue
		}
		line = line[:0]
		p.Frames(s.Stack, func(l stacks.Line) {
			if len(line) > 0 {
				line = append(line, ';')
			}
			line = append(line, name(l.Function)...)
		})
		sums[string(line)] += n
	}
	lines := make([]string, 0, len(sums))
	for text := range sums {
		lines = append(lines, text)
	}
	slices.Sort(lines)
	b := bufio.NewWriter(w)
	for _, text := range lines {
		for _, part := range [...]string{text, " ", strconv.FormatUint(sums[text], 10), "\n"} {
			if _, err := b.WriteString(part); err != nil {
				return err
			}
		}
	}
	return b.Flush()
}

// name is a function in a line: a semicolon would end it, so it is a colon, as
// stackcollapse-perf.pl has it. The blanks of C++ names stay: the last one of a
// line is before the number.
func name(function string) string {
	if function == "" {
		return sites.Unknown
	}
	return strings.ReplaceAll(sites.Printable(function), ";", ":")
}
