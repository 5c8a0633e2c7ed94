package resident

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"rtrace-bpf/internal/linux/proc"
)

// Mappings returns the mappings of a process, ordered by address, from /proc/PID/smaps. Each
// one is consistent; what changes while they are read may appear in both states. The error wraps
// proc.ErrNoProcess if there is no such process, proc.ErrNoProgram if it has no memory.
func Mappings(pid int) ([]Mapping, error) {
	var all []Mapping
	err := read(pid, "smaps", func(r io.Reader) (err error) {
		all, err = Parse(r)
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("process %d: %w", pid, proc.ErrNoProgram)
	}
	return all, err
}

// Total returns the sums over all mappings, which the kernel reads in one go from
// /proc/PID/smaps_rollup. The errors are those of Mappings.
func Total(pid int) (Usage, error) {
	var all []Mapping
	err := read(pid, "smaps_rollup", func(r io.Reader) (err error) {
		all, err = Parse(r)
		return err
	})
	switch {
	case err != nil:
		return Usage{}, err
	case len(all) != 1:
		return Usage{}, fmt.Errorf("process %d: %w", pid, proc.ErrNoProgram)
	}
	return all[0].Usage, nil
}

// read opens a file about a process.
func read(pid int, name string, parse func(io.Reader) error) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err == nil {
		defer f.Close()
		err = parse(f)
	}
	switch {
	case err == nil:
		return nil
	case !proc.Exists(pid):
		return fmt.Errorf("process %d: %w", pid, proc.ErrNoProcess)
	case errors.Is(err, syscall.ESRCH):
		return fmt.Errorf("process %d: %w", pid, proc.ErrNoProgram)
	}
	return fmt.Errorf("read %s of process %d: %w", name, pid, err)
}
