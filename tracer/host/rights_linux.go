package host

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// CheckRights says what keeps this process from tracing any other, as far as that does
// not depend on which: ErrNotPrivileged, ErrContainer, ErrLockedDown, ErrOpenFiles or ErrUnsupported.
func CheckRights() error {
	var kernel Kernel
	if err := kernel.Capabilities(); err != nil {
		return err
	}
	if err := CheckOpenFiles(); err != nil {
		return err
	}
	if err := FreeMemory(); err != nil {
		return err
	}
	return errors.Join(kernel.Types(), kernel.KernelReads())
}

// FreeMemory lets BPF have the memory that it takes: kernels before 5.11 charge it to
// RLIMIT_MEMLOCK.
func FreeMemory() error {
	err := rlimit.RemoveMemlock()
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w CAP_SYS_RESOURCE: before Linux 5.11 the memory of BPF counts as locked", ErrNotPrivileged)
	case err != nil:
		return fmt.Errorf("raise the limit of locked memory: %w", err)
	}
	return nil
}
