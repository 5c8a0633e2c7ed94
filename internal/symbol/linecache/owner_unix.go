//go:build unix

package linecache

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports whether a folder belongs to this user and is closed to others.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

// trusted reports whether only this user or root can replace what is in a folder. That is
// so if one of them owns it and others cannot write there, or only to their own files. A
// program that root runs does not trust a user's folder.
func trusted(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return false
	}
	return info.Mode().Perm()&0o022 == 0 || info.Mode()&fs.ModeSticky != 0
}
