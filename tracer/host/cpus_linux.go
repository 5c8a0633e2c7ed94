package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// OnlineCPUs returns the numbers of the CPUs that are online, from /sys.
func OnlineCPUs() ([]int, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("list cpus: %w", err)
	}
	return ParseCPUList(strings.TrimSpace(string(b)))
}

// ParseCPUList parses a list of CPUs in the kernel's form, such as "0-3,8".
func ParseCPUList(list string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("list cpus: parse %q: %w", list, err)
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("list cpus: parse %q: %w", list, err)
			}
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
