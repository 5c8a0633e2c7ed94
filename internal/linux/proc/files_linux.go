package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// File is a regular file that a process has open.
type File struct {
	FD      int
	Size    uint64 // bytes, as cached by the file system
	Path    string // as seen from our own root, begins with a slash
	Deleted bool   // the name was removed
}

// maxDescriptors is the most descriptors that are read.
const maxDescriptors = 1 << 16

// Files returns the regular files that the process has open now, ordered by descriptor. It
// leaves out files that the process closes in the meantime.
func Files(pid int) ([]File, error) {
	numbers, err := descriptors(pid)
	if err != nil {
		return nil, explain(pid, "open files", err, err)
	}
	var all []File
	for _, fd := range numbers {
		f, regular, err := openFile(file(pid, "fd/"+strconv.Itoa(fd)))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
			continue
		case err != nil:
			return nil, fmt.Errorf("open files of process %d: %w", pid, err)
		}
		if f.FD = fd; regular {
			all = append(all, f)
		}
	}
	return all, nil
}

// Descriptors returns the descriptors that the process has open now, in order. It returns none
// if the process has ended or must not be inspected.
func Descriptors(pid int) []int {
	numbers, _ := descriptors(pid)
	return numbers
}

// descriptors returns an error if the list cannot be opened.
func descriptors(pid int) ([]int, error) {
	dir, err := os.Open(file(pid, "fd"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxDescriptors) // incomplete if the process has ended
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, fd)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// openFile reads the properties of a descriptor. It does not ask for what a file system would
// have to get from another machine, because that could take any time.
func openFile(link string) (f File, regular bool, err error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_SIZE, &st); err != nil {
		return f, false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return f, false, nil
	}
	path, err := os.Readlink(link)
	if err != nil {
		return f, false, err
	}
	f.Size = st.Size
	f.Path, f.Deleted = strings.CutSuffix(path, deletedSuffix)
	return f, strings.HasPrefix(f.Path, "/"), nil
}
