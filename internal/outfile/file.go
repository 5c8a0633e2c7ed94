// Package outfile creates the files that traces are written to. It never
// overwrites a file, and after a failed write the file ends after the last
// successful one.
package outfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"rtrace-bpf/internal/safefile"
)

// File is an output. Write is all or nothing for regular files, so an encoder
// that writes whole packets leaves a valid file when the disk is full.
type File struct {
	f        *os.File
	path     string
	name     string   // in dir
	dir      *os.Root // folder of a file that was created here, else nil
	size     int64
	regular  bool
	borrowed bool // Close leaves it open
}

// Create creates the file at path, which must not exist, with access for its
// owner only (see package safefile). It opens an existing FIFO, socket or
// character device instead. If a FIFO has no reader, Create calls waits and
// waits for a reader until ctx ends.
func Create(ctx context.Context, path string, waits func()) (*File, error) {
	dir, name, err := safefile.Folder(path)
	if err != nil {
		return nil, fmt.Errorf("create output: %w", err)
	}
	o, err := create(dir, name, path)
	if err == nil {
		return o, nil
	}
	dir.Close()
	if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create output: %w", err)
	}
	f, errOpen := safefile.OpenSpecial(ctx, path, waits)
	if errOpen != nil {
		if !errors.Is(errOpen, fs.ErrExist) {
			err = errOpen
		}
		return nil, fmt.Errorf("create output: %w", err)
	}
	return &File{f: f, path: path}, nil
}

// create creates the file with the given name in dir; path is for messages. The
// file takes over dir.
func create(dir *os.Root, name, path string) (*File, error) {
	f, err := safefile.Create(dir, name)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = &fs.PathError{Op: "open", Path: path, Err: p.Err}
	}
	if err != nil {
		return nil, err
	}
	return &File{f: f, path: path, name: name, dir: dir, regular: true}, nil
}

// CreateNumbered creates the first file of dir/prefix-0suffix,
// dir/prefix-1suffix … that does not exist yet.
func CreateNumbered(dir, prefix, suffix string) (*File, error) {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("create output: %w", err)
	}
	for n := 0; ; n++ {
		name := prefix + "-" + strconv.Itoa(n) + suffix
		o, err := create(folder, name, filepath.Join(dir, name))
		switch {
		case err == nil:
			return o, nil
		case !errors.Is(err, fs.ErrExist):
			folder.Close()
			return nil, fmt.Errorf("create output: %w", err)
		}
	}
}

// Wrap returns an output to an open file, such as standard output. Closing the
// output leaves f open.
func Wrap(f *os.File, name string) *File { return &File{f: f, path: name, borrowed: true} }

// Path returns the path of the file.
func (o *File) Path() string { return o.path }

// Size returns the number of bytes written.
func (o *File) Size() int64 { return o.size }

// Regular reports whether the output is a regular file that Create or
// CreateNumbered made.
func (o *File) Regular() bool { return o.regular }

// Write implements io.Writer. After a failed write to a regular file, it
// truncates the file to the last successful write.
func (o *File) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	if err == nil {
		o.size += int64(n)
		return n, nil
	}
	err = fmt.Errorf("write %s: %w", o.path, cause(err))
	if o.regular {
		if e := o.f.Truncate(o.size); e == nil {
			_, e = o.f.Seek(o.size, 0)
			return 0, errors.Join(err, e)
		}
	}
	o.size += int64(n)
	return n, err
}

// cause returns an error of a file without the file's name.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Close closes the file unless it came from Wrap.
func (o *File) Close() error {
	if o.borrowed {
		return nil
	}
	if err := o.f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", o.path, cause(err))
	}
	if o.dir != nil {
		o.dir.Close()
	}
	return nil
}

// Discard closes the file and, if it was created here, removes it.
func (o *File) Discard() error {
	var err error
	if o.dir != nil {
		err = o.dir.Remove(o.name)
	}
	return errors.Join(o.Close(), err)
}
