//go:build !linux

package replay

import (
	"math"
	"os/exec"
)

// supported reports whether replays can run here.
const supported = false

func ownGroup(*exec.Cmd) {}

// AvailableMemory is only implemented on Linux; elsewhere there is no limit.
func AvailableMemory() (uint64, error) { return math.MaxUint64, nil }
