package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// priority is the nice value of a tracer: the highest ordinary priority. A real-time
// one could stop a machine.
const priority = -20

// Prioritize lets the threads of this process run before those of processes
// with ordinary priority. A busy target fills its rings in a tenth of a
// second, and on a busy machine a reader of ordinary priority waits longer
// than that for its turn. The tracer still uses no more than it needs.
//
// It changes the whole process, so only its main function should call it. Without
// CAP_SYS_NICE it returns an error and changes nothing.
func Prioritize() error { return setPriority(priority) }

// Unprioritize gives all threads the ordinary nice value, 0, for work that must not
// keep the target waiting.
func Unprioritize() error { return setPriority(0) }

// setPriority sets the nice value of all threads. A new thread inherits the value of
// the thread that starts it, which may still be the old one. So setPriority repeats
// until no thread has another value.
func setPriority(nice int) error {
	for {
		changed, err := setPriorityOnce(nice)
		if err != nil || !changed {
			return err
		}
	}
}

// setPriorityOnce sets the nice value of the threads that exist now, and reports whether
// any had another one.
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
		if err == nil && 20-raw != nice { // the system call returns 20 less the nice value
			changed = true
			err = unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // ESRCH: the thread has ended
			return false, fmt.Errorf("set own priority: %w", err)
		}
	}
	return changed, nil
}
