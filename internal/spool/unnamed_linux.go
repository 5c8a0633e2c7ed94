package spool

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// unnamedName is the name of an unnamed file in messages.
const unnamedName = "spool"

// openUnnamed opens a file in dir without a name. It fails if the file system
// does not support that.
func openUnnamed(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open unnamed file: %w", err)
	}
	return os.NewFile(uintptr(fd), unnamedName), nil
}

// named reports whether f had a name when it was opened.
func named(f *os.File) bool { return f.Name() != unnamedName }

// release releases n bytes of f at the given offset to the file system.
func release(f *os.File, from, n int64) {
	// If this is not supported, the memory is released with the file.
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, n)
}
