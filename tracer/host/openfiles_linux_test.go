package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// When the limit of open files is reached, Shortage turns the library's "not supported"
// into ErrOpenFiles. It returns other errors as they are.
func TestShortage(t *testing.T) {
	missing := fmt.Errorf("map create: %w", ebpf.ErrNotSupported)
	other := errors.New("other")
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if old.Cur < uint64(4*neededFiles()) {
		t.Skipf("SKIPPED-PRIVILEGE: the limit of open files is %d", old.Cur)
	}
	if err := CheckOpenFiles(); err != nil {
		t.Error(err)
	}
	for _, err := range []error{other, nil} {
		if got := Shortage(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	free, limit, err := openFiles()
	if err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: uint64(limit - free + 5), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	checked, short, kept := CheckOpenFiles(), Shortage(missing), Shortage(other)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(checked, ErrOpenFiles) || !errors.Is(short, ErrOpenFiles) || kept != other {
		t.Errorf("with 5 files left: %v; %v; %v", checked, short, kept)
	}
}
