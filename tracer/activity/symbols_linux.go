package activity

import (
	"bufio"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// symbols holds the addresses of the kernel's functions for system calls, by name.
type symbols map[string]uint64

// prefixes returns the prefixes of the names of these functions, for each kind of program. The
// first one that exists counts.
func prefixes() [abis][]string {
	if runtime.GOARCH == "arm64" {
		return [abis][]string{{"__arm64_sys_"}, nil}
	}
	return [abis][]string{{"__x64_sys_"}, {"__ia32_compat_sys_", "__ia32_sys_"}}
}

// otherNames holds the functions of calls whose names differ.
var otherNames = [abis]map[string]string{
	{"stat": "newstat", "lstat": "newlstat", "fstat": "newfstat", "umount2": "umount", "sendfile": "sendfile64"},
	{
		"stat": "newstat", "lstat": "newlstat", "fstat": "newfstat", "umount2": "umount", "umount": "oldumount",
		"oldstat": "stat", "oldlstat": "lstat", "oldfstat": "fstat",
		"_llseek": "llseek", "_newselect": "select", "select": "old_select", "mmap": "old_mmap", "readdir": "old_readdir",
		"mmap2": "mmap_pgoff", "chown": "chown16", "lchown": "lchown16", "fchown": "fchown16",
		"chown32": "chown", "lchown32": "lchown", "fchown32": "fchown",
	},
}

// address returns the address of a call's function, or number if it is unknown.
func (s symbols) address(abi int, name string, number uint64) uint64 {
	if other := otherNames[abi][name]; other != "" {
		name = other
	}
	for _, prefix := range prefixes()[abi] {
		if at := s[prefix+name]; at != 0 {
			return at
		}
	}
	return number
}

// kernelSymbols reads the functions once. It is empty if the kernel does not show them
// (kernel.kptr_restrict, or no CONFIG_KALLSYMS).
var kernelSymbols = sync.OnceValue(func() symbols {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil
	}
	defer f.Close()
	return readSymbols(f)
})

// readSymbols reads lines of an address, a type and a name. Hidden addresses are 0.
func readSymbols(r io.Reader) symbols {
	all := symbols{}
	known := prefixes()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := lines.Text()
		if !strings.Contains(line, "_sys_") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue // it belongs to a module
		}
		for _, list := range known {
			for _, prefix := range list {
				if strings.HasPrefix(fields[2], prefix) {
					if at, err := strconv.ParseUint(fields[0], 16, 64); err == nil && at != 0 {
						all[fields[2]] = at
					}
				}
			}
		}
	}
	return all
}
