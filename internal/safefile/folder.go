package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PrivateFolder is the mode of folders that are made.
const PrivateFolder fs.FileMode = 0o700

// MakeFolder makes the folder at path for its owner alone, who under sudo is the user who
// called. A folder that is there already stays as it is.
func MakeFolder(path string) error {
	path = filepath.Clean(path)
	dir, name, err := Folder(path)
	if err != nil {
		return fmt.Errorf("make the directory %s: %w", path, pathError(filepath.Dir(path), err))
	}
	defer dir.Close()
	switch err := dir.Mkdir(name, PrivateFolder); {
	case errors.Is(err, fs.ErrExist):
		if info, e := os.Stat(path); e == nil && info.IsDir() {
			return nil
		}
		return fmt.Errorf("make the directory %s: %w", path, pathError(path, err))
	case err != nil:
		return fmt.Errorf("make the directory %s: %w", path, pathError(path, err))
	}
	f, err := dir.Open(name)
	if err != nil {
		return fmt.Errorf("make the directory %s: %w", path, pathError(path, err))
	}
	return errors.Join(Give(f), f.Close())
}
