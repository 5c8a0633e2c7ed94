//go:build !linux

package testutil

import "errors"

func noBPF() error { return errors.New("not Linux") }
