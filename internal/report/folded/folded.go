// Package folded writes profiles as folded stacks, which flamegraph.pl and many
// viewers read. Each line has the functions from the outermost to the
// innermost, separated by semicolons, then a blank and a number.
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

// Write writes one value of a profile. It leaves out stacks whose value is 0
// and adds up stacks with the same text. Lines are in byte order. Write does
// not close w.
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

// name returns a function as it appears in a line. Semicolons would end it, so
// they become colons, as in stackcollapse-perf.pl. Blanks in C++ names stay,
// because the number follows the last blank of a line.
func name(function string) string {
	if function == "" {
		return sites.Unknown
	}
	return strings.ReplaceAll(sites.Printable(function), ";", ":")
}
