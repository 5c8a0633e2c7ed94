package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// CreateNamed is Create on a file system without unnamed files.
func CreateNamed(path string) (*File, error) {
	return create(path, public, func(*os.Root, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported })
}
