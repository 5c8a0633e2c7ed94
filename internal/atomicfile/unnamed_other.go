//go:build !linux

package atomicfile

import (
	"errors"
	"os"
)

// openUnnamed says that files have names from the beginning here.
func openUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func link(*os.File, string) error { return errors.ErrUnsupported }
