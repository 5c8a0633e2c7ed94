// Package safefile creates and opens files for writing in folders that other
// users may be able to write to, even if the caller is root. It follows no
// symbolic link, does not mistake another user's file for its own, and makes
// new files readable only for the user that the program works for.
package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Private is the mode of new files.
const Private fs.FileMode = 0o600

// Create creates a file with the given name in dir. The name must not exist,
// not even as a symbolic link that leads nowhere. Under sudo the file belongs
// to the user who called sudo.
func Create(dir *os.Root, name string) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, Private)
	if err != nil {
		return nil, err
	}
	if err := Give(f); err != nil {
		return nil, errors.Join(err, f.Close(), dir.Remove(name))
	}
	return f, nil
}

// Folder opens the folder of path and returns the base name of path. Operations
// through dir stay in that folder, even if it is renamed or replaced.
func Folder(path string) (dir *os.Root, name string, err error) {
	dir, err = os.OpenRoot(filepath.Dir(path))
	return dir, filepath.Base(path), err
}

// ErrNoReader reports that the context ended while waiting for a reader of a
// FIFO.
var ErrNoReader = errors.New("ended while waiting for a reader")

// special is the set of types that an existing file must have to be written to.
const special = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeCharDevice

// checkSpecial returns an error if files of this mode are not written to.
func checkSpecial(mode fs.FileMode) error {
	switch {
	case mode.IsRegular() || mode.IsDir():
		return fs.ErrExist
	case mode&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link, which is not followed: use the path of its target")
	case mode&special == 0:
		return errors.New("it is not a FIFO, socket or character device")
	}
	return nil
}

func pathError(path string, err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

func giveError(name string, err error) error {
	return fmt.Errorf("give %s to the user who called sudo: %w", name, err)
}

// Read opens a regular file of dir for reading. It does not block on FIFOs and
// follows no link.
func Read(dir *os.Root, name string) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|unblocked, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !opened.Mode().IsRegular() {
		err = fs.ErrExist
	}
	if named, e := dir.Lstat(name); err == nil && (e != nil || !os.SameFile(named, opened)) {
		err = fs.ErrExist
	}
	if err != nil {
		return nil, errors.Join(pathError(name, err), f.Close())
	}
	return f, nil
}
