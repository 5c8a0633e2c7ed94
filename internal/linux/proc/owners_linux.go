package proc

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Owners holds the users whose files a process may have made itself, with their IDs in our user
// namespace: its own user, root, and root of its user namespace.
type Owners []uint32

// FileOwners returns the Owners of a process.
func FileOwners(pid int) (Owners, error) {
	status, err := ReadStatus(pid)
	if err != nil {
		return nil, err
	}
	const effective, fileSystem = 1, 3
	owners := Owners{0, status.UID[effective], status.UID[fileSystem]}
	// Without user namespaces there is no such file.
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", pid)); err == nil {
		owners = append(owners, rootsOf(text)...)
	}
	return owners, nil
}

// rootsOf returns the user who is root in a namespace, given the text of its uid_map; nil if it
// has no root.
func rootsOf(uidMap []byte) []uint32 {
	for line := range bytes.Lines(uidMap) {
		var inside, outside, count uint32
		if _, err := fmt.Sscan(string(line), &inside, &outside, &count); err == nil && inside == 0 && count > 0 {
			return []uint32{outside}
		}
	}
	return nil
}

// Has reports whether a user is one of o.
func (o Owners) Has(uid uint32) bool { return slices.Contains(o, uid) }

// Made reports whether a file belongs to one of o.
func (o Owners) Made(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && o.Has(st.Uid)
}

// MayHaveMade reports whether a running process may itself have made a file.
func MayHaveMade(pid int, info fs.FileInfo) bool {
	owners, err := FileOwners(pid)
	return err == nil && owners.Made(info)
}
