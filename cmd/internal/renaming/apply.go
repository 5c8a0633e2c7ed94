package renaming

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/atomicfile"
)

// Apply renames the files. It overwrites other files only with force, and never
// one of the files to rename. After an error, all files have their old names
// again.
func (p *Plan) Apply(force bool) (err error) {
	if err := p.Check(force); err != nil {
		return err
	}
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for _, u := range slices.Backward(undo) {
			err = errors.Join(err, u())
		}
	}()
	// First the steps that may fail halfway.
	for i := range p.Files {
		if f := &p.Files[i]; f.Rewrite {
			to := filepath.Join(p.dir, f.New)
			if err := p.copy(f); err != nil {
				return fmt.Errorf("writing %s: %w", to, err)
			}
			undo = append(undo, func() error { return os.Remove(to) })
		}
	}
	for i := range p.Files {
		f := &p.Files[i]
		if f.Rewrite {
			continue
		}
		from, to := filepath.Join(p.dir, f.Old), filepath.Join(p.dir, f.New)
		if err := move(from, to, force); err != nil {
			return err
		}
		undo = append(undo, func() error { return move(to, from, false) })
	}
	undo = nil // from here on nothing is undone
	var all []error
	for i := range p.Files {
		if f := &p.Files[i]; f.Rewrite {
			all = append(all, os.Remove(filepath.Join(p.dir, f.Old)))
		}
	}
	return errors.Join(all...)
}

// move renames a file. It overwrites another file only with force.
func move(from, to string, force bool) error {
	if !force {
		// Creating a link fails if the name exists, unlike a rename. Not all
		// file systems support links.
		switch err := os.Link(from, to); {
		case err == nil:
			return os.Remove(from)
		case errors.Is(err, fs.ErrExist):
			return err
		}
	}
	return os.Rename(from, to)
}

// copy writes a trace under its new name, with the new names of attachments.
func (p *Plan) copy(f *File) (err error) {
	from, err := os.Open(filepath.Join(p.dir, f.Old))
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	in, err := decoder.NewInput(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	create := atomicfile.Create
	if info.Mode().Perm()&0o077 == 0 {
		create = atomicfile.CreatePrivate
	}
	path := filepath.Join(p.dir, f.New)
	to, err := create(path)
	if err != nil {
		return err
	}
	w, closers, err := compress(to, f.compression)
	if err == nil {
		err = p.rewrite(w, in, f.format)
	}
	if err == nil {
		err = in.Err() // a compressed trace is truncated
	}
	for _, c := range slices.Backward(closers) {
		err = errors.Join(err, c())
	}
	if err != nil {
		return errors.Join(err, to.Discard())
	}
	if err := to.Commit(); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}

// compress returns a writer that compresses like the original file, the
// outermost compression first, and functions to be called in reverse order.
func compress(w io.Writer, kinds []string) (io.Writer, []func() error, error) {
	var closers []func() error
	for _, kind := range kinds {
		var c io.WriteCloser
		switch kind {
		case "gzip":
			c = gzip.NewWriter(w)
		case "zstd":
			z, err := zstd.NewWriter(w)
			if err != nil {
				return nil, closers, err
			}
			c = z
		default:
			return nil, closers, fmt.Errorf("compression %s: %w", kind, errors.ErrUnsupported)
		}
		closers = append(closers, c.Close)
		w = c
	}
	return w, closers, nil
}
