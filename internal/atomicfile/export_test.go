package atomicfile

import (
	"errors"
	"os"
)

// CreateNamed is Create on a file system whose files have names.
func CreateNamed(path string) (*File, error) {
	return create(path, func(string) (*os.File, error) { return nil, errors.ErrUnsupported })
}
