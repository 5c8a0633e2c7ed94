package apt

import (
	"os"
	"syscall"
)

// lockFile waits for the lock of a file, which ends when the file is closed.
func lockFile(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}
