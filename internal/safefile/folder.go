package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PrivateFolder is the mode of new folders.
const PrivateFolder fs.FileMode = 0o700

// MakeFolder creates the folder at path for its owner alone, who under sudo is
// the user who called sudo. An existing folder is left unchanged.
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
