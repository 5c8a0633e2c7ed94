package apt

import (
	"os"
	"syscall"
)

// lockFile waits for the lock of a file. Closing the file releases it.
func lockFile(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}
