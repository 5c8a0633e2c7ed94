package testutil

import (
	"os"
	"runtime"
)

// Hardened returns sets of compiler flags by which distributions harden calls
// and returns, for the machine that Build builds for: on arm64 return addresses
// are signed on the stack, with one key or the other, also by functions that
// call nothing; on x86-64 functions begin with landing pads.
func Hardened() [][]string {
	if builtFor() == "arm64" {
		return [][]string{{"-mbranch-protection=standard"}, {"-mbranch-protection=pac-ret+leaf"}, {"-mbranch-protection=pac-ret+leaf+b-key"}}
	}
	return [][]string{{"-fcf-protection=full"}}
}

// WithoutLinkerTables returns the flags by which the linker makes no unwind tables
// of its own: on x86-64 it does, for procedure linkage tables.
func WithoutLinkerTables() []string {
	if builtFor() == "amd64" {
		return []string{"-Wl,--no-ld-generated-unwind-info"}
	}
	return nil
}

// builtFor returns the architecture that Build builds for. That is another one
// than this only where programs are prepared for another machine.
func builtFor() string {
	if arch := os.Getenv("GOARCH"); Preparing() && arch != "" {
		return arch
	}
	return runtime.GOARCH
}
