package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Processes returns the ids of the processes that there are now, ordered.
// Those of kernel threads and zombies are among them.
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

// Self returns the id of the calling process as /proc counts it. It is another
// one than os.Getpid's if /proc is that of another PID namespace.
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
