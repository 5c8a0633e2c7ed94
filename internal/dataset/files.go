package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"rtrace-bpf/internal/atomicfile"
)

// files is the unfinished files of a trace.
type files struct {
	dir  string
	made bool   // dir was missing
	name string // of each file
	in   string // partition
	of   map[string]*atomicfile.File
}

// createFiles begins a file for each table.
func createFiles(dir string, s *Source) (*files, error) {
	f := &files{dir: dir, name: s.ID + ".parquet", in: s.partition(), of: make(map[string]*atomicfile.File)}
	_, err := os.Stat(dir)
	f.made = errors.Is(err, fs.ErrNotExist)
	for _, table := range Tables() {
		folder := filepath.Join(dir, table, f.in)
		err := os.MkdirAll(folder, 0o755)
		if err == nil {
			f.of[table], err = atomicfile.Create(filepath.Join(folder, f.name))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("adding to the dataset %s: %w", dir, err), f.discard())
		}
	}
	return f, nil
}

// commit makes the files appear, and removes those of the same trace in other partitions.
func (f *files) commit() error {
	for _, table := range Tables() {
		file := f.of[table]
		delete(f.of, table)
		if err := file.Commit(); err != nil {
			return errors.Join(err, f.discard())
		}
	}
	tables := Tables()
	slices.Reverse(tables) // first what makes it complete
	for _, table := range tables {
		if err := f.removeOthers(table); err != nil {
			return err
		}
	}
	return nil
}

// removeOthers removes the files of the trace in other partitions of a table.
func (f *files) removeOthers(table string) error {
	all, err := fs.Glob(os.DirFS(filepath.Join(f.dir, table)), "date=*/host=*/service=*/"+f.name)
	if err != nil {
		return err
	}
	own := filepath.ToSlash(filepath.Join(f.in, f.name))
	for _, name := range all {
		if name == own {
			continue
		}
		path := filepath.Join(f.dir, table, filepath.FromSlash(name))
		if err := os.Remove(path); err != nil {
			return err
		}
		f.removeEmpty(table, filepath.Dir(filepath.FromSlash(name)))
	}
	return nil
}

// removeEmpty removes the folders of a partition that are empty.
func (f *files) removeEmpty(table, in string) {
	for ; in != "."; in = filepath.Dir(in) {
		if os.Remove(filepath.Join(f.dir, table, in)) != nil {
			return
		}
	}
	_ = os.Remove(filepath.Join(f.dir, table)) // not if there are other traces
}

// discard removes unfinished files, and folders that are empty; the dataset's own only if it was
// missing.
func (f *files) discard() (err error) {
	for table, file := range f.of {
		err = errors.Join(err, file.Discard())
		f.removeEmpty(table, f.in)
	}
	f.of = nil
	if f.made {
		_ = os.Remove(f.dir) // not if another trace was added meanwhile
	}
	return err
}
