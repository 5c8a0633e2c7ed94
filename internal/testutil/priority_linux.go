package testutil

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// ordinary calls start, which starts a process, with ordinary priority, whatever the priority
// of the test is. A traced program must not inherit a tracer's priority: eight busy threads of
// it would leave nothing for anything else.
func ordinary(start func() error) error {
	// A process inherits the priority of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	nice := 20 - raw // raw is the system call's encoding
	if nice >= 0 {
		return start()
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 0); err != nil {
		return err
	}
	err = start()
	if e := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err == nil {
		err = e
	}
	return err
}
