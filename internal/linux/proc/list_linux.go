package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Processes returns the IDs of all processes that exist now, in ascending order, including
// kernel threads and zombies.
func Processes() ([]int, error) {
	dir, err := os.Open(root)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// Self returns the ID that the calling process has in /proc. It differs from os.Getpid if /proc
// belongs to another PID namespace.
func Self() (int, error) {
	name, err := os.Readlink(root + "/self")
	if err != nil {
		return 0, fmt.Errorf("find own process: %w", err)
	}
	pid, err := strconv.Atoi(name)
	if err != nil {
		return 0, fmt.Errorf("find own process: %w", syntax(err))
	}
	return pid, nil
}
