// Package atomicfile writes files that appear under their name only when they
// are complete.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// File is a file in the making. Call Commit or Discard in the end.
type File struct {
	f         *os.File
	path      string
	temporary string // the name it has until it is complete; empty if it is the output itself
	unnamed   bool   // it has not even that name yet
	done      bool
}

// Create starts the file that shall be at path, replacing what is there then.
// Where the file system can, it has no name until then, so that a process that
// is killed leaves nothing; else a hidden name in the same folder. A FIFO,
// socket or device at path is opened instead and written at once.
func Create(path string) (*File, error) { return create(path, openUnnamed) }

func create(path string, openUnnamed func(dir string) (*os.File, error)) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{f: f, path: path}, nil
	case err == nil:
		// Replace the file that a link leads to, not the link.
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	for {
		name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36)+".tmp")
		if f, err := openUnnamed(filepath.Dir(path)); err == nil {
			return &File{f: f, path: path, temporary: name, unnamed: true}, nil
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "create", Path: path, Err: cause(err)}
		}
		return &File{f: f, path: path, temporary: name}, nil
	}
}

func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Regular reports whether the output is a regular file.
func (f *File) Regular() bool { return f.temporary != "" }

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.f.Write(b)
	if err != nil {
		err = &fs.PathError{Op: "write", Path: f.path, Err: cause(err)}
	}
	return n, err
}

// Commit completes the file and gives it its name. After an error nothing of
// it stays.
func (f *File) Commit() error {
	if f.done {
		return nil
	}
	if f.temporary == "" {
		f.done = true
		return f.f.Close()
	}
	err := f.f.Sync()
	if err == nil && f.unnamed {
		// Only an existing name can replace another one in one step.
		if err = link(f.f, f.temporary); err == nil {
			f.unnamed = false
		}
	}
	if err == nil {
		err = f.f.Close()
	}
	if err == nil {
		err = os.Rename(f.temporary, f.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("completing %s: %w", f.path, cause(err)), f.Discard())
	}
	f.done = true
	return nil
}

// Discard gives the file up: nothing of it stays. After Commit it does nothing.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	f.done = true
	_ = f.f.Close() // its content does not matter
	if f.temporary == "" || f.unnamed {
		return nil
	}
	if err := os.Remove(f.temporary); err != nil {
		return fmt.Errorf("removing unfinished file: %w", err)
	}
	return nil
}
