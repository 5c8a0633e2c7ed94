package residence

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/linux/resident"
)

// View is which pages of a process are resident at a moment.
type View struct {
	Ranges  []resident.Range // ascending
	Mapped  []resident.Range // the mappings, ascending
	borders []uint64         // addresses at which they begin or end, ascending
}

// Bytes returns how many bytes are resident.
func (v *View) Bytes() (n uint64) {
	for _, r := range v.Ranges {
		n += r.End - r.Start
	}
	return n
}

// within returns the borders after start and before end.
func (v *View) within(start, end uint64) []uint64 {
	from, _ := slices.BinarySearch(v.borders, start+1)
	to, _ := slices.BinarySearch(v.borders, end)
	return v.borders[from:max(from, to)]
}

// maps reports whether anything from start up to end is mapped.
func (v *View) maps(start, end uint64) bool {
	i, _ := slices.BinarySearchFunc(v.Mapped, start, func(m resident.Range, at uint64) int { return cmp.Compare(m.End, at+1) })
	return i < len(v.Mapped) && v.Mapped[i].Start < end
}

// setMapped sets the mappings.
func (v *View) setMapped(all []resident.Range) {
	v.Mapped = all
	for _, m := range all {
		v.borders = append(v.borders, m.Start, m.End)
	}
	v.borders = slices.Compact(v.borders)
}

// Read returns which pages of the process of a thread are resident. The process runs on: a page
// that comes or goes meanwhile may be in the result or not. The error wraps one of package proc if
// the thread has no memory any more.
func Read(tid int) (v *View, err error) {
	pages, err := resident.OpenPagemap(tid)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pages.Close()) }()
	all, err := proc.Maps(tid)
	if err != nil {
		return nil, err
	}
	v = new(View)
	var mapped []resident.Range
	for i := range all {
		if all[i].End < 1<<63 { // the kernel shows its own page there, too
			mapped = append(mapped, resident.Range{Start: all[i].Start, End: all[i].End})
		}
	}
	if len(mapped) == 0 {
		return nil, fmt.Errorf("mappings of process %d: %w", tid, proc.ErrGone)
	}
	v.setMapped(mapped)
	err = pages.Scan(mapped[len(mapped)-1].End, func(r resident.Range) { v.Ranges = append(v.Ranges, r) })
	if errors.Is(err, resident.ErrNoScan) {
		return v, v.readEach(tid, pages)
	}
	if err != nil {
		return nil, err
	}
	return v, v.dropHuge(tid)
}

// readEach reads each mapping that has resident pages, for kernels before 6.7.
func (v *View) readEach(tid int, pages *resident.Pagemap) error {
	all, err := resident.Mappings(tid)
	if err != nil {
		return err
	}
	v.Ranges = nil
	for i := range all {
		if all[i].Resident == 0 {
			continue
		}
		found, err := pages.Read(&all[i])
		if err != nil {
			return err
		}
		found.Runs(func(r resident.Range) { v.Ranges = append(v.Ranges, r) })
	}
	return nil
}

// dropHuge removes the pages of hugetlbfs, which the kernel does not count as resident.
func (v *View) dropHuge(tid int) error {
	has, err := hasHuge(tid)
	if err != nil || !has {
		return err
	}
	all, err := resident.Mappings(tid)
	if err != nil {
		return err
	}
	v.Ranges = slices.DeleteFunc(v.Ranges, func(r resident.Range) bool {
		i, _ := slices.BinarySearchFunc(all, r.Start, func(m resident.Mapping, at uint64) int {
			switch {
			case m.End <= at:
				return -1
			case m.Start > at:
				return 1
			}
			return 0
		})
		return i < len(all) && all[i].Hugetlb > 0
	})
	return nil
}

// hasHuge reports whether the process has pages of hugetlbfs.
func hasHuge(tid int) (bool, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return false, fmt.Errorf("status of process %d: %w (%w)", tid, proc.ErrGone, err)
	}
	_, rest, ok := bytes.Cut(text, []byte("\nHugetlbPages:"))
	if !ok {
		return false, nil
	}
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
	return err == nil && n > 0, nil
}

// Balances reports whether the kernel moves pages between NUMA nodes. To see who uses a page, it
// then lets accesses fault on pages that are there.
func Balances() bool {
	text, err := os.ReadFile("/proc/sys/kernel/numa_balancing")
	return err == nil && string(bytes.TrimSpace(text)) != "0"
}
