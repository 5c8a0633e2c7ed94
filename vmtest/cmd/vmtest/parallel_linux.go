package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machinesAtOnce returns the default number of machines to run at the same time, limited by CPUs
// and memory. An emulated machine keeps one CPU busy, however many it has itself; one with KVM
// keeps as many busy as it has.
func machinesAtOnce(s *settings, all []*choice) (int, error) {
	each, err := bytesOf(s.memory)
	if err != nil {
		return 0, err
	}
	n := min(len(all), runtime.NumCPU())
	for _, c := range all {
		if c.kvm {
			n = min(n, runtime.NumCPU()/s.cpus)
		}
	}
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var kib int64
		if _, err := fmt.Sscanf(in.Text(), "MemAvailable: %d kB", &kib); err == nil {
			n = min(n, int(kib<<10/each))
		}
	}
	return max(n, 1), nil
}

// bytesOf parses an amount of memory as QEMU does: a number of MiB, or a number with a unit.
func bytesOf(amount string) (int64, error) {
	digits := strings.TrimRight(amount, "kKmMgG")
	shift, known := map[string]int{"": 20, "k": 10, "m": 20, "g": 30}[strings.ToLower(amount[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !known || n <= 0 {
		return 0, &usageError{fmt.Errorf("memory %q: want an amount like 3G or 512M", amount)}
	}
	return n << shift, nil
}
