package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a new file in dir without a name. It vanishes when it is
// closed, unless link gives it a name. openUnnamed fails if the file system
// does not support that.
func openUnnamed(dir *os.Root, mode fs.FileMode) (*os.File, error) {
	folder, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	fd, err := unix.Openat(int(folder.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, uint32(mode.Perm()))
	if err != nil {
		return nil, fmt.Errorf("open unnamed file: %w", err)
	}
	f := os.NewFile(uintptr(fd), dir.Name())
	if _, err := os.Stat(descriptor(f)); err != nil { // link needs it
		return nil, fmt.Errorf("open unnamed file: %w, %w", err, f.Close())
	}
	return f, nil
}

// link gives an unnamed file a name in dir, which must not exist.
func link(f *os.File, dir *os.Root, name string) error {
	folder, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := unix.Linkat(unix.AT_FDCWD, descriptor(f), int(folder.Fd()), name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return fmt.Errorf("name the file: %w", err)
	}
	return nil
}

// descriptor returns the path of an open file in /proc.
func descriptor(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
