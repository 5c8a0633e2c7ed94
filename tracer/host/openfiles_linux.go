package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrOpenFiles says that this process may not have as many open files as a tracer needs.
var ErrOpenFiles = errors.New("too few open files are allowed")

// neededFiles is about how many files a tracer opens: each map, program and probe is
// one, as are the buffers of each processor.
func neededFiles() int { return 56 + 4*runtime.NumCPU() }

// openFiles returns how many files this process may still open, and the limit.
func openFiles() (free, limit int, err error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, 0, err
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, int(r.Cur), err
	}
	const itself = 1 // the folder
	return int(r.Cur) - len(names) + itself, int(r.Cur), nil
}

// CheckOpenFiles returns ErrOpenFiles if a tracer cannot open the files that it needs.
// It is asked first: what comes later takes this for something else.
func CheckOpenFiles() error {
	free, limit, err := openFiles()
	if need := neededFiles(); errors.Is(err, unix.EMFILE) || err == nil && free < need {
		return fmt.Errorf("%w: a tracer needs about %d more than are open, and the limit is %d", ErrOpenFiles, need, limit)
	}
	return nil
}

// Shortage returns err, or what it means where files or memory were short: the library
// asks the kernel then which features it has, and takes every failure for a no.
func Shortage(err error) error {
	if !errors.Is(err, ebpf.ErrNotSupported) && !errors.Is(err, unix.EMFILE) {
		return err
	}
	// What was open when it failed may have been closed since.
	if free, limit, e := openFiles(); errors.Is(e, unix.EMFILE) || e == nil && free < 2*neededFiles() {
		return fmt.Errorf("%w: the limit is %d", ErrOpenFiles, limit)
	}
	m, e := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if e != nil {
		return e // not even this
	}
	return errors.Join(err, m.Close())
}
