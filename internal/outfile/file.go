// Package outfile creates the files that traces are written to. A file is
// never overwritten, and a write that fails leaves a file that ends behind the
// last write that did not.
package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// File is an output. Its Write is all or nothing for regular files, so an
// encoder that writes whole packets leaves a valid file when the disk is full.
type File struct {
	f        *os.File
	path     string
	size     int64
	regular  bool
	created  bool
	borrowed bool // not ours to close
}

// Create makes the file at path, which must not exist. An existing FIFO,
// socket or character device is opened instead.
func Create(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		return &File{f: f, path: path, regular: true, created: true}, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create output: %w", err)
	}
	info, statErr := os.Stat(path)
	if statErr != nil {
		return nil, fmt.Errorf("create output: %w", statErr)
	}
	if info.Mode().IsRegular() || info.IsDir() {
		return nil, fmt.Errorf("create output: %w", err)
	}
	if f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	return &File{f: f, path: path}, nil
}

// CreateNumbered makes the first file of dir/prefix-0suffix, dir/prefix-1suffix
// … that does not exist yet.
func CreateNumbered(dir, prefix, suffix string) (*File, error) {
	for n := 0; ; n++ {
		path := filepath.Join(dir, prefix+"-"+strconv.Itoa(n)+suffix)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		switch {
		case err == nil:
			return &File{f: f, path: path, regular: true, created: true}, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("create output: %w", err)
		}
	}
}

// Wrap returns an output on an open file, as standard output, that stays the
// caller's.
func Wrap(f *os.File, name string) *File { return &File{f: f, path: name, borrowed: true} }

// Path returns the name of the file.
func (o *File) Path() string { return o.path }

// Size returns the number of bytes written.
func (o *File) Size() int64 { return o.size }

// Regular says whether it is a regular file that Create or CreateNumbered made.
func (o *File) Regular() bool { return o.regular }

// Write implements io.Writer. After a failed write to a regular file the part
// that did get through is taken back.
func (o *File) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	if err == nil {
		o.size += int64(n)
		return n, nil
	}
	err = fmt.Errorf("write %s: %w", o.path, err)
	if o.regular {
		if e := o.f.Truncate(o.size); e == nil {
			_, e = o.f.Seek(o.size, 0)
			return 0, errors.Join(err, e)
		}
	}
	o.size += int64(n)
	return n, err
}

// Close closes the file unless it was given to Wrap.
func (o *File) Close() error {
	if o.borrowed {
		return nil
	}
	if err := o.f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", o.path, err)
	}
	return nil
}

// Discard closes and, if it was created here, removes the file.
func (o *File) Discard() error {
	err := o.Close()
	if o.created {
		err = errors.Join(err, os.Remove(o.path))
	}
	return err
}
