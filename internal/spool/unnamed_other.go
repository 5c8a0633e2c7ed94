//go:build !linux

package spool

import (
	"errors"
	"os"
)

// openUnnamed is not supported here.
func openUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func named(*os.File) bool { return true }

func release(*os.File, int64, int64) {}
