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

// maxLinks is how many symbolic links may lead from one to the next, as in the kernel.
const maxLinks = 40

// Follow returns the path that a symbolic link at path leads to, at last, or path
// itself if it is none. It follows no link that somebody else has put into a folder
// that everybody can write to.
func Follow(path string) (string, error) {
	at := path
	for range maxLinks {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return at, nil // what is wrong is seen when it is opened
		}
		dir, err := os.Stat(filepath.Dir(at))
		if err != nil {
			return "", pathError(path, err)
		}
		if everybodys(dir) && !Ours(info) {
			return "", pathError(path, fmt.Errorf("the symbolic link %s is somebody else's, in a folder that everybody can write to", at))
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

// Inherit gives f, which is new, the owner, group and permissions of the file called
// name in dir, which f is to replace. A file that somebody else has put into a folder
// like /tmp is not replaced. Where f cannot have the group, its group may do what
// everybody may.
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
