//go:build !linux

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// openUnnamed is not supported here.
func openUnnamed(*os.Root, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

func link(*os.File, *os.Root, string) error { return errors.ErrUnsupported }
