//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxLinks is the largest number of symbolic links in a chain, as in the
// kernel.
const maxLinks = 40

// Follow returns the final target of a symbolic link at path, or path itself if
// it is not a link. It returns an error for a link that another user has put
// into a folder that everybody can write to.
func Follow(path string) (string, error) {
	at := path
	for range maxLinks {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return at, nil // opening it reports any error
		}
		dir, err := os.Stat(filepath.Dir(at))
		if err != nil {
			return "", pathError(path, err)
		}
		if everybodys(dir) && !Ours(info) {
			return "", pathError(path, fmt.Errorf("the symbolic link %s belongs to another user and is in a folder that everybody can write to", at))
		}
		to, err := os.Readlink(at)
		if err != nil {
			return "", pathError(path, err)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(at) + string(filepath.Separator) + to // ".." after a link is not the folder before it
		}
		at = to
	}
	return "", pathError(path, syscall.ELOOP)
}

// Inherit gives the new file f the owner, group and permissions of the file
// called name in dir, which f replaces. It returns an error if another user has
// put that file into a folder like /tmp. If f cannot have the group, its group
// gets the permissions of others.
func Inherit(f *os.File, dir *os.Root, name string) error {
	old, err := dir.Lstat(name)
	if err != nil || !old.Mode().IsRegular() {
		return nil
	}
	folder, err := dir.Stat(".")
	if err == nil {
		err = checkOwnerIn(folder, old)
	}
	if err != nil {
		return pathError(name, err)
	}
	mode := old.Mode().Perm()
	if owner, ok := old.Sys().(*syscall.Stat_t); ok {
		uid, gid := int(owner.Uid), int(owner.Gid)
		if err := errors.Join(f.Chown(-1, gid), f.Chown(uid, -1)); err != nil {
			if now, e := f.Stat(); e != nil || !sameGroup(now, gid) {
				mode = mode&^0o070 | mode&0o007<<3
			}
		}
	}
	if err := f.Chmod(mode); err != nil && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("set the permissions of the new %s: %w", name, err)
	}
	return nil
}

func sameGroup(info fs.FileInfo, gid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Gid) == gid
}
