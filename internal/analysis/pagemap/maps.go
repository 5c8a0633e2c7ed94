// Package pagemap reads the attachments of sp-rtrace's pagemap module: a copy
// of /proc/PID/maps, and for each page of the process its state in the kernel.
// It finds the allocations in these areas and how many bytes of each page they
// cover.
package pagemap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
)

// Area is a mapping of a process: [Start, End).
type Area struct {
	Start, End uint64
	Write      bool
	Shared     bool
	Path       string // of the file, [heap] and the like, or empty
	Line       string // as in /proc/PID/maps
}

// Pages returns the number of pages of the given size, in bytes.
func (a *Area) Pages(size uint64) uint64 { return (a.End - a.Start) / size }

// Limits of a maps attachment. Linux allows 65530 mappings by default
// (vm.max_map_count) and paths of 4096 bytes, each of which may be escaped as
// four.
const (
	maxAreas = 1 << 20
	maxLine  = 1 << 16
)

// ErrNoAreas reports that a maps attachment contains no line of /proc/PID/maps.
var ErrNoAreas = errors.New("it contains no line of /proc/PID/maps")

// ReadMaps reads a copy of /proc/PID/maps. It skips other lines and replaces
// control characters.
func ReadMaps(r io.Reader) ([]Area, error) {
	var areas []Area
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		a, ok := parseArea(lines.Text())
		if !ok {
			continue
		}
		if len(areas) == maxAreas {
			return nil, fmt.Errorf("more than %d areas", maxAreas)
		}
		areas = append(areas, a)
	}
	switch err := lines.Err(); {
	case err != nil && len(areas) == 0 && errors.Is(err, bufio.ErrTooLong), err == nil && len(areas) == 0:
		return nil, ErrNoAreas
	case err != nil:
		return nil, err
	}
	return areas, nil
}

// parseArea parses START-END PERMISSIONS OFFSET DEVICE INODE PATH. The path may
// be missing or contain blanks.
func parseArea(line string) (a Area, ok bool) {
	line = strings.TrimSuffix(line, "\r")
	a.Line = sites.Printable(line)
	var fields [5]string
	rest := line
	for i := range fields {
		rest = strings.TrimLeft(rest, " \t")
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		fields[i], rest = rest[:end], rest[end:]
	}
	a.Path = sites.Printable(strings.Trim(rest, " \t"))
	start, end, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields[1]) != 4 || fields[2] == "" {
		return a, false
	}
	var err [2]error
	a.Start, err[0] = strconv.ParseUint(start, 16, 64)
	a.End, err[1] = strconv.ParseUint(end, 16, 64)
	if err[0] != nil || err[1] != nil || a.End <= a.Start {
		return a, false
	}
	a.Write, a.Shared = fields[1][1] == 'w', fields[1][3] == 's'
	return a, true
}

// Find returns the index of the first area that contains an address, or -1.
type Find func(address uint64) int

// NewFind returns a Find for areas, which need not be in order.
func NewFind(areas []Area) Find {
	order := make([]int, len(areas))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := areas[a].Start, areas[b].Start; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return func(address uint64) int {
		i, found := slices.BinarySearchFunc(order, address, func(n int, at uint64) int {
			switch start := areas[n].Start; {
			case start < at:
				return -1
			case start > at:
				return 1
			}
			return 0
		})
		if !found {
			i--
		}
		if i < 0 || address >= areas[order[i]].End {
			return -1
		}
		return order[i]
	}
}
