// Package atomicfile writes files that appear under their name only when they
// are complete.
package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"

	"rtrace-bpf/internal/safefile"
)

// File is an unfinished file. Call Commit or Discard at the end.
type File struct {
	f         *os.File
	path      string   // for messages
	dir       *os.Root // its folder; nil for a special file
	name      string   // in dir
	temporary string   // its name until it is complete; empty for a special file
	unnamed   bool     // it does not have its temporary name yet
	done      bool
}

// Create begins a file that replaces the file at path when it is committed. If
// the file system supports it, the unfinished file has no name, so a process
// that is killed leaves nothing behind; otherwise it has a hidden name in the
// same folder. Create follows a symbolic link, unless another user has put it
// into a folder like /tmp. A replaced file passes on its owner and permissions.
// If path is a FIFO, socket or character device, Create opens it, and writes go
// to it at once.
func Create(path string) (*File, error) { return create(path, public, openUnnamed) }

// CreatePrivate is Create for a program that may run as root and write into
// folders of other users. Only the owner can read the file, and no link is
// followed (see package safefile).
func CreatePrivate(path string) (*File, error) { return create(path, private, openUnnamed) }

// kind defines how a file is created.
type kind struct {
	mode   fs.FileMode
	follow func(path string) (string, error)                 // resolves the path
	give   func(f *os.File, dir *os.Root, name string) error // sets the owner of the new file
}

var (
	public = kind{
		mode:   0o644,
		follow: safefile.Follow,
		give:   safefile.Inherit,
	}
	private = kind{
		mode:   safefile.Private,
		follow: func(path string) (string, error) { return path, nil },
		give:   func(f *os.File, _ *os.Root, _ string) error { return safefile.Give(f) },
	}
)

// opener opens a new file without a name in dir, or fails if that is not
// supported.
type opener func(dir *os.Root, mode fs.FileMode) (*os.File, error)

func create(path string, k kind, openUnnamed opener) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("is a directory")}
	case err == nil && !info.Mode().IsRegular():
		f, err := openSpecial(path, k)
		if err != nil {
			return nil, err
		}
		return &File{f: f, path: path}, nil
	}
	to, err := k.follow(path)
	if err != nil {
		return nil, err
	}
	dir, name, err := safefile.Folder(to)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: cause(err)}
	}
	file := &File{path: path, dir: dir, name: name}
	if err = file.begin(k.mode, openUnnamed); err == nil {
		err = k.give(file.f, dir, name)
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "create", Path: path, Err: cause(err)}, file.Discard())
	}
	return file, nil
}

// openSpecial opens a FIFO, socket or character device.
func openSpecial(path string, k kind) (*os.File, error) {
	if !safefile.IsDescriptor(path) {
		var err error
		if path, err = k.follow(path); err != nil {
			return nil, err
		}
	}
	return safefile.OpenSpecial(context.Background(), path, nil)
}

// begin opens the unfinished file.
func (f *File) begin(mode fs.FileMode, openUnnamed opener) error {
	var err error
	if f.f, err = openUnnamed(f.dir, mode); err == nil {
		f.temporary, f.unnamed = f.hidden(), true
		return nil
	}
	for {
		name := f.hidden()
		f.f, err = f.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			f.temporary = name
		}
		return err
	}
}

// hidden returns a hidden name that cannot be guessed.
func (f *File) hidden() string {
	return "." + f.name + "." + strconv.FormatUint(rand.Uint64(), 36) + ".tmp"
}

func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
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

// Commit completes the file and gives it its name. After an error nothing of it
// is left.
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
		// A rename replaces a file atomically, but needs a file with a name.
		if err = link(f.f, f.dir, f.temporary); err == nil {
			f.unnamed = false
		}
	}
	if err == nil {
		err = f.f.Close()
	}
	if err == nil {
		err = f.dir.Rename(f.temporary, f.name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("completing %s: %w", f.path, cause(err)), f.Discard())
	}
	f.done = true
	f.dir.Close()
	return nil
}

// Discard removes the unfinished file. After Commit it does nothing.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	f.done = true
	if f.f != nil {
		_ = f.f.Close() // its content does not matter
	}
	if f.dir == nil {
		return nil
	}
	defer f.dir.Close()
	if f.temporary == "" || f.unnamed {
		return nil
	}
	if err := f.dir.Remove(f.temporary); err != nil {
		return fmt.Errorf("removing unfinished file: %w", err)
	}
	return nil
}
