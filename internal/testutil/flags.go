package testutil

import (
	"os"
	"runtime"
)

// Hardened returns the sets of compiler flags with which distributions harden calls and
// returns, for the machine that Build builds for. On arm64 return addresses are signed on the
// stack, with one key or the other, even in functions that call nothing. On x86-64 functions
// begin with landing pads.
func Hardened() [][]string {
	if builtFor() == "arm64" {
		return [][]string{{"-mbranch-protection=standard"}, {"-mbranch-protection=pac-ret+leaf"}, {"-mbranch-protection=pac-ret+leaf+b-key"}}
	}
	return [][]string{{"-fcf-protection=full"}}
}

// WithoutLinkerTables returns the flags that stop the linker from making unwind tables of its
// own: on x86-64 it makes them for procedure linkage tables.
func WithoutLinkerTables() []string {
	if builtFor() == "amd64" {
		return []string{"-Wl,--no-ld-generated-unwind-info"}
	}
	return nil
}

// builtFor returns the architecture that Build builds for. It differs from this machine's only
// while programs are prepared for another machine.
func builtFor() string {
	if arch := os.Getenv("GOARCH"); Preparing() && arch != "" {
		return arch
	}
	return runtime.GOARCH
}
