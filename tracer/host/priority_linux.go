package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// priority is the nice value of a tracer: before others, but no real-time one,
// which could stop a machine.
const priority = -20

// Prioritize lets the threads of this process run before those of processes
// with ordinary priority. A busy target fills its rings in a tenth of a
// second, and on a busy machine a reader of ordinary priority waits longer
// than that for its turn. The tracer still uses no more than it needs.
//
// It is for the whole process and so for its main function to call. Without
// CAP_SYS_NICE it returns an error and changes nothing.
func Prioritize() error { return setPriority(priority) }

// Unprioritize takes back what Prioritize has done, for work that the target
// must not wait for.
func Unprioritize() error { return setPriority(0) }

// setPriority sets the nice value of all threads. A thread inherits it from the
// one that starts it, which may not have been reached yet: so it looks again until
// there is nothing left to do.
func setPriority(nice int) error {
	for {
		changed, err := setPriorityOnce(nice)
		if err != nil || !changed {
			return err
		}
	}
}

func setPriorityOnce(nice int) (changed bool, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false, fmt.Errorf("list own threads: %w", err)
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			return false, fmt.Errorf("list own threads: %w", err)
		}
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if err == nil && 20-raw != nice { // as the system call returns it
			changed = true
			err = unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // that one has ended
			return false, fmt.Errorf("set own priority: %w", err)
		}
	}
	return changed, nil
}
