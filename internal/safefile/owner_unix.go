//go:build unix

package safefile

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// invoker returns the user who called sudo to become root. ok is false without
// sudo.
func invoker() (uid, gid int, ok bool) {
	if os.Getuid() != 0 || os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, errUser := id(os.Getenv("SUDO_UID"))
	g, errGroup := id(os.Getenv("SUDO_GID"))
	return u, g, errUser == nil && errGroup == nil
}

// id parses the number of a user or group. The largest number means none and is
// an error.
func id(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n == 1<<32-1 {
		err = strconv.ErrRange
	}
	return int(n), err
}

// Give makes the user who called sudo the owner of f. If the file system has no
// owners, or does not permit this one, the file stays root's.
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
