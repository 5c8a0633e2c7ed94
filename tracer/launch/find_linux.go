package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/printable"
)

// Reasons why a command cannot be started.
var (
	ErrNotFound      = errors.New("command not found")
	ErrNotExecutable = errors.New("command cannot be executed")
)

// find returns the path of a program: the name if it contains a slash, otherwise the first
// executable file of that name in the folders of path.
func find(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // the kernel reports what is wrong with it
	}
	why := ErrNotFound
	for _, folder := range filepath.SplitList(path) {
		file := folder + "/" + name
		if folder == "" {
			file = "./" + name
		}
		info, err := os.Stat(file)
		if name == "" || err != nil || info.IsDir() {
			continue
		}
		if unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS) == nil {
			return file, nil
		}
		why = ErrNotExecutable
	}
	return "", fmt.Errorf("%s: %w", printable.Name(name), why)
}

// startError returns why the kernel did not start the program at path.
func startError(path string, err error) error {
	why := error(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		why = ErrNotFound
		if _, e := os.Stat(path); e == nil { // its interpreter is missing
			err = fmt.Errorf("its interpreter: %w", err)
		}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ETXTBSY),
		errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELIBBAD), errors.Is(err, unix.EINVAL):
		why = ErrNotExecutable
	default:
		return fmt.Errorf("start %s: %w", printable.Name(path), err)
	}
	return fmt.Errorf("start %s: %w: %w", printable.Name(path), why, err)
}
