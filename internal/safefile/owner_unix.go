//go:build unix

package safefile

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// invoker returns the user who called sudo to become root; ok is false if nobody
// did.
func invoker() (uid, gid int, ok bool) {
	if os.Getuid() != 0 || os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, errUser := id(os.Getenv("SUDO_UID"))
	g, errGroup := id(os.Getenv("SUDO_GID"))
	return u, g, errUser == nil && errGroup == nil
}

// id reads the number of a user or group. The largest one means none.
func id(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n == 1<<32-1 {
		err = strconv.ErrRange
	}
	return int(n), err
}

// Give makes f the property of the user who called sudo. Where files have no
// owners, or the user cannot have any, it stays root's.
func Give(f *os.File) error {
	uid, gid, ok := invoker()
	if !ok || uid == 0 {
		return nil
	}
	err := f.Chown(uid, gid)
	switch {
	case err == nil, errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTSUP):
		return nil
	}
	return giveError(f.Name(), err)
}
