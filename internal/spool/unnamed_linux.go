package spool

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// unnamedName is what a file without a name is called in messages.
const unnamedName = "spool"

// openUnnamed opens a file in dir that never has a name. It fails where that
// cannot be.
func openUnnamed(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open unnamed file: %w", err)
	}
	return os.NewFile(uintptr(fd), unnamedName), nil
}

// named says whether f had a name when it was opened.
func named(f *os.File) bool { return f.Name() != unnamedName }

// release gives n bytes of f from offset on back to the file system.
func release(f *os.File, from, n int64) {
	// Where it cannot be done the file goes as a whole in the end.
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, n)
}
