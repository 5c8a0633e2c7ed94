//go:build !linux

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// openUnnamed says that files have names from the beginning here.
func openUnnamed(*os.Root, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

func link(*os.File, *os.Root, string) error { return errors.ErrUnsupported }
