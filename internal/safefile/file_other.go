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

// OpenSpecial opens the FIFO, socket or character device at path for writing.
// For a regular file it returns fs.ErrExist.
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

// Follow returns the final target of a symbolic link at path, or path itself if
// it is not a link.
func Follow(path string) (string, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to, nil
	}
	return path, nil
}

// Inherit does nothing: there are no owners.
func Inherit(*os.File, *os.Root, string) error { return nil }

// IsDescriptor reports whether path names an open file. No path does here.
func IsDescriptor(string) bool { return false }

// Ours reports whether a file belongs to the user. There are no owners here.
func Ours(fs.FileInfo) bool { return true }
