package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrOpenFiles is the error when this process may not open as many files as a tracer needs.
var ErrOpenFiles = errors.New("too few open files are allowed")

// neededFiles returns about how many files a tracer opens: one for each map, program and
// probe, and for each buffer of each CPU.
func neededFiles() int { return 56 + 4*runtime.NumCPU() }

// openFiles returns how many more files this process may open, and the limit.
func openFiles() (free, limit int, err error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, 0, err
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, int(r.Cur), err
	}
	const itself = 1 // the descriptor that lists the folder
	return int(r.Cur) - len(names) + itself, int(r.Cur), nil
}

// CheckOpenFiles returns an error that wraps ErrOpenFiles if a tracer cannot open the
// files that it needs. Call it before other tests of the host: they would report another
// cause.
func CheckOpenFiles() error {
	free, limit, err := openFiles()
	if need := neededFiles(); errors.Is(err, unix.EMFILE) || err == nil && free < need {
		return fmt.Errorf("%w: a tracer needs about %d more than are open, and the limit is %d", ErrOpenFiles, need, limit)
	}
	return nil
}

// Shortage returns err, or the error that caused it if files or memory ran out. After
// a failure the eBPF library tests which features the kernel has, and reports a feature
// as missing if the test fails for any reason.
func Shortage(err error) error {
	if !errors.Is(err, ebpf.ErrNotSupported) && !errors.Is(err, unix.EMFILE) {
		return err
	}
	// Files that were open when err occurred may have been closed since.
	if free, limit, e := openFiles(); errors.Is(e, unix.EMFILE) || e == nil && free < 2*neededFiles() {
		return fmt.Errorf("%w: the limit is %d", ErrOpenFiles, limit)
	}
	m, e := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if e != nil {
		return e // the smallest map cannot be made either
	}
	return errors.Join(err, m.Close())
}
