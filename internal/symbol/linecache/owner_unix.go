//go:build unix

package linecache

import (
	"io/fs"
	"os"
	"syscall"
)

// private says whether a folder is this user's and closed to others.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

// trusted says whether only this user, or root, can replace what is in a folder: it
// is theirs, and others may not write there, or only what is their own. A program
// that root runs does not trust a user's folder.
func trusted(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return false
	}
	return info.Mode().Perm()&0o022 == 0 || info.Mode()&fs.ModeSticky != 0
}
