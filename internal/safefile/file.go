// Package safefile creates and opens files for writing under names in folders
// that other users may be able to write to, also when the caller is root: no
// symbolic link is followed, no file of somebody else's is taken for one of ours,
// and only the user for whom the program works can read what is created.
package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Private is the mode of what is created.
const Private fs.FileMode = 0o600

// Create makes a file with that name in dir, where nothing must have it: a
// symbolic link that leads nowhere is something. Under sudo it belongs to the
// user who called.
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

// Folder opens the folder of path, and returns the name of path in it. What is
// done through it stays there, whatever becomes of the folder's own name.
func Folder(path string) (dir *os.Root, name string, err error) {
	dir, err = os.OpenRoot(filepath.Dir(path))
	return dir, filepath.Base(path), err
}

// ErrNoReader is the end of waiting for a reader of a FIFO.
var ErrNoReader = errors.New("ended while waiting for a reader")

// special is what a file must be to be written to under an existing name.
const special = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeCharDevice

// checkSpecial says why a file of this mode is not written to.
func checkSpecial(mode fs.FileMode) error {
	switch {
	case mode.IsRegular() || mode.IsDir():
		return fs.ErrExist
	case mode&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link, which could lead anywhere: name what it leads to")
	case mode&special == 0:
		return errors.New("it is no FIFO, socket or character device")
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

// Read opens a regular file of dir to read it. It does not wait for whoever else
// might open it, and follows no link.
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
