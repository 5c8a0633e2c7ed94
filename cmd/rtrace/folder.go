package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"rtrace-bpf/internal/cli"
)

// folder is a folder of results. It appears under its name when all of it is complete, and
// replaces nothing but an empty folder.
type folder struct {
	path      string
	temporary string
}

// createFolder begins a folder.
func createFolder(path string) (*folder, error) {
	entries, err := os.ReadDir(path)
	switch {
	case err == nil && len(entries) > 0:
		return nil, cli.WithHint(fmt.Errorf("the folder %s is not empty", path), "name a new folder: nothing is overwritten")
	case err == nil || errors.Is(err, os.ErrNotExist):
	default:
		return nil, cli.FileError("creating the folder", path, err)
	}
	path = filepath.Clean(path)
	name := "." + filepath.Base(path) + "." + strconv.FormatUint(rand.Uint64(), 36) + ".tmp"
	f := &folder{path: path, temporary: filepath.Join(filepath.Dir(path), name)}
	if err := os.Mkdir(f.temporary, 0o755); err != nil {
		return nil, cli.FileError("creating the folder", path, err)
	}
	return f, nil
}

// write creates a file in the folder.
func (f *folder) write(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(filepath.Join(f.temporary, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return cli.FileError("creating", filepath.Join(f.path, name), err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return cli.FileError("writing", filepath.Join(f.path, name), err)
	}
	return nil
}

// finish keeps the folder if err leaves something worth keeping, and otherwise discards it.
// It returns err, or the last failure.
func (f *folder) finish(err error) error {
	if !isIncomplete(err) {
		return errors.Join(err, os.RemoveAll(f.temporary))
	}
	if e := f.place(); e != nil {
		return errors.Join(cli.FileError("completing the folder", f.path, e), os.RemoveAll(f.temporary))
	}
	return err
}

// place gives the folder its name. It replaces an empty folder of that name.
func (f *folder) place() error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(f.temporary, f.path)
}
