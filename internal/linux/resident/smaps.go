package resident

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"rtrace-bpf/internal/linux/proc"
)

// Usage is how much memory is in use, in bytes.
type Usage struct {
	Resident     uint64 // Rss
	Proportional uint64 // Pss: resident memory, each page divided by the processes that map it
	Shared       uint64 // resident, and mapped by other processes, too
	Anonymous    uint64 // resident, and not the content of a file
	Huge         uint64 // resident, anonymous, in transparent huge pages
	Swap         uint64 // swapped out; not resident
	Hugetlb      uint64 // in pages of hugetlbfs; the kernel does not count them as resident
}

// Mapping is one entry of /proc/PID/smaps.
type Mapping struct {
	proc.Map
	Usage
}

// Limits of a reading.
const (
	maxMappings = 1 << 20 // the kernel's default is 65,530 (vm.max_map_count)
	maxLine     = 1 << 15 // bytes, as in package proc
)

// errTooMany reports a process with more mappings than are read.
var errTooMany = fmt.Errorf("the process has more than %d mappings", maxMappings)

// Parse reads entries in the form of /proc/PID/smaps. If there is an error, the entries before
// it are returned.
func Parse(r io.Reader) ([]Mapping, error) {
	var (
		all   []Mapping
		heads proc.MapsReader
		one   []proc.Map
	)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for lines.Scan() {
		line := lines.Bytes()
		if isHead(line) {
			if len(all) == maxMappings {
				return all, errTooMany
			}
			var err error
			if one, err = heads.Parse(one[:0], bytes.NewReader(line)); err != nil {
				return all, err
			}
			all = append(all, Mapping{Map: one[0]})
			continue
		}
		if len(all) == 0 {
			return all, fmt.Errorf("smaps begins with a field: %w", proc.ErrSyntax)
		}
		if err := all[len(all)-1].field(line); err != nil {
			return all, err
		}
	}
	return all, lines.Err()
}

// isHead reports whether a line begins an entry: with an address in lower case. Fields begin
// with an upper case letter.
func isHead(line []byte) bool {
	return len(line) > 0 && (line[0] >= '0' && line[0] <= '9' || line[0] >= 'a' && line[0] <= 'f')
}

// field adds a line such as "Rss:   12 kB". It skips fields that it does not know.
func (u *Usage) field(line []byte) error {
	name, rest, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return fmt.Errorf("smaps has the line %.40q: %w", line, proc.ErrSyntax)
	}
	var to *uint64
	switch string(name) {
	case "Rss":
		to = &u.Resident
	case "Pss":
		to = &u.Proportional
	case "Shared_Clean", "Shared_Dirty":
		to = &u.Shared
	case "Anonymous":
		to = &u.Anonymous
	case "AnonHugePages":
		to = &u.Huge
	case "Swap":
		to = &u.Swap
	case "Private_Hugetlb", "Shared_Hugetlb":
		to = &u.Hugetlb
	default:
		return nil
	}
	number, ok := bytes.CutSuffix(bytes.TrimSpace(rest), []byte(" kB"))
	if !ok {
		return fmt.Errorf("smaps has the line %.40q: %w", line, proc.ErrSyntax)
	}
	n, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil || n > (1<<64-1-*to)>>10 {
		return errors.Join(fmt.Errorf("smaps has the line %.40q: %w", line, proc.ErrSyntax), err)
	}
	*to += n << 10
	return nil
}

// Add adds another usage to u.
func (u *Usage) Add(o Usage) {
	u.Resident += o.Resident
	u.Proportional += o.Proportional
	u.Shared += o.Shared
	u.Anonymous += o.Anonymous
	u.Huge += o.Huge
	u.Swap += o.Swap
	u.Hugetlb += o.Hugetlb
}
