//go:build !unix

package safefile

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

const unblocked = 0

// Give does nothing: there is no sudo.
func Give(*os.File) error { return nil }

// OpenSpecial opens the FIFO, socket or character device at path to write to it.
// What is regular is fs.ErrExist.
func OpenSpecial(_ context.Context, path string, _ func()) (*os.File, error) {
	f, err := openSpecial(path)
	return f, pathError(path, err)
}

func openSpecial(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := checkSpecial(info.Mode()); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY, 0)
}

// Follow returns the path that a symbolic link at path leads to, at last, or path
// itself if it is none.
func Follow(path string) (string, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to, nil
	}
	return path, nil
}

// Inherit does nothing: there are no owners.
func Inherit(*os.File, *os.Root, string) error { return nil }

// IsDescriptor reports whether path names an open file: none does.
func IsDescriptor(string) bool { return false }

// Ours reports whether a file belongs to the user: there are no owners.
func Ours(fs.FileInfo) bool { return true }
