package launch

import (
	"fmt"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
)

// start is a way in which programs begin.
type start uint8

const (
	startLoader    start = iota // the dynamic loader maps the libraries and runs constructors
	startOwnLoader              // the C library is the loader; constructors run after the entry point
	startStatic                 // no loader
	startByHand                 // the program is the dynamic loader, with a program as its argument
)

// Functions that identify the kinds of files.
const (
	loaderFunction = "__tls_get_addr"    // of dynamic loaders
	libcFunction   = "__libc_start_main" // of C libraries; calls main
)

// startOf finds how a process begins. word is the size of its pointers in bytes. Its program must
// have just been mapped.
func startOf(pid, word int) (start, error) {
	base, err := proc.Interpreter(pid, word)
	if err != nil {
		return 0, err
	}
	if base == 0 {
		loader, libc, err := roles(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || !loader || libc {
			return startStatic, err
		}
		return startByHand, nil
	}
	all, err := proc.Maps(pid)
	if err != nil {
		return 0, err
	}
	for _, m := range all {
		if base >= m.Start && base < m.End {
			_, libc, err := roles(proc.Path(pid, m))
			if err != nil || !libc {
				return startLoader, err
			}
			return startOwnLoader, nil
		}
	}
	return startLoader, nil
}

// roles reports whether an ELF file is a dynamic loader, a C library, or both.
func roles(path string) (loader, libc bool, err error) {
	f, err := symbol.Open(path)
	if err != nil {
		return false, false, err
	}
	_, loader = f.Exported(loaderFunction)
	_, libc = f.Exported(libcFunction)
	return loader, libc, f.Close()
}
