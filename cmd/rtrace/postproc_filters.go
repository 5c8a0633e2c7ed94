package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/cmd/internal/postproc"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
)

// callFilters are the flags that select calls.
type callFilters postproc.Filters

// selection is the value of these flags, except --call-address, which needs the trace.
func (c *callFilters) selection(warn func(error)) (*filter.Selection, error) {
	s := new(filter.Selection)
	var err error
	if c.Resources != "" {
		if s.Resources, err = hexMask("resource", c.Resources); err != nil {
			return nil, err
		}
	}
	if c.Contexts != "" {
		s.InContext = true
		if s.Contexts, err = hexMask("context", c.Contexts); err != nil {
			return nil, err
		}
	}
	if c.Address != "" {
		if _, err = parseCallAddress(c.Address); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Include != "" && c.Exclude != "":
		warn(errors.New("--exclude has no effect with --include"))
		fallthrough
	case c.Include != "":
		s.Include, err = readIndexes(c.Include)
	case c.Exclude != "":
		s.Exclude, err = readIndexes(c.Exclude)
	}
	return s, err
}

// hexMask parses a mask of 32 bits.
func hexMask(name, text string) (uint32, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return 0, cli.Usagef("--%s takes a hexadecimal mask of at most 32 bits, not %q", name, text)
	}
	return uint32(n), nil
}

// maxIndexes limits the numbers of calls in a file, 8 bytes each.
const maxIndexes = 1 << 27

// readIndexes reads numbers of calls, one per line: decimal, hexadecimal with 0x, or octal
// with 0, as in the original. The result is sorted and not nil.
func readIndexes(name string) ([]uint64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, cli.FileError("opening", name, err)
	}
	defer f.Close()
	all := []uint64{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		index, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %q is not the number of a call", name, n, text)
		}
		if len(all) == maxIndexes {
			return nil, fmt.Errorf("%s: more than %d numbers", name, maxIndexes)
		}
		all = append(all, index)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
