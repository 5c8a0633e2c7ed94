package host

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// CheckRights returns an error if this process cannot trace any other, whichever that is.
// The error wraps ErrNotPrivileged, ErrContainer, ErrLockedDown, ErrOpenFiles or
// ErrUnsupported.
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

// FreeMemory lifts the limit of locked memory (RLIMIT_MEMLOCK), to which kernels before
// 5.11 charge the memory of BPF.
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
