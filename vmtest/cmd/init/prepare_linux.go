package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mounts lists what tests need. If a kernel lacks an optional file system, the tests that need
// it report that.
var mounts = []struct {
	from, at, kind, data string
	optional             bool
}{
	{"proc", "/proc", "proc", "", false},
	{"sysfs", "/sys", "sysfs", "", false},
	{"devtmpfs", "/dev", "devtmpfs", "", false},
	{"devpts", "/dev/pts", "devpts", "", true},
	{"tmpfs", "/dev/shm", "tmpfs", "mode=1777", true},
	{"tmpfs", "/tmp", "tmpfs", "mode=1777,size=90%", false},
	{"tmpfs", "/run", "tmpfs", "mode=755", true},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2", "", true},
	{"debugfs", "/sys/kernel/debug", "debugfs", "", true},
	{"tracefs", "/sys/kernel/tracing", "tracefs", "", true},
	{"bpf", "/sys/fs/bpf", "bpf", "", true},
}

// prepare prepares the guest for running programs.
func prepare() error {
	for _, m := range mounts {
		// Folders below /sys exist, or cannot be made.
		if err := os.MkdirAll(m.at, 0o755); err != nil && !m.optional {
			return err
		}
		if inside, err := os.ReadDir(m.at); err == nil && len(inside) > 0 && m.kind == "tmpfs" {
			continue // keep what the host put there visible, such as a clone below /tmp
		}
		err := unix.Mount(m.from, m.at, m.kind, 0, m.data)
		switch {
		case err == nil, errors.Is(err, unix.EBUSY): // the kernel may have mounted /dev
		case m.optional:
			fmt.Fprintf(os.Stderr, "vmtest init: no %s: %v\n", m.at, err)
		default:
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	for name, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, name); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := os.Chmod("/tmp", 0o777|os.ModeSticky); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("vmtest")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("bring up the loopback device: %w", err)
	}
	return raw()
}

func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }() // it served only for the request
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request)
}

// raw keeps the console from adding carriage returns and from echoing.
func raw() error {
	t, err := unix.IoctlGetTermios(1, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(1, unix.TCSETS, t); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	return nil
}
