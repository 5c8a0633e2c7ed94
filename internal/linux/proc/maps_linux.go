package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Maps returns the mappings of the process, ordered by address. For kernel threads and zombies
// the list is empty. The kernel produces the list in pieces of a page. Each piece is
// consistent; what changes between two pieces may appear in both states. If the process ends or
// executes another program in between, Maps reads the list again.
func Maps(pid int) ([]Map, error) {
	var mr MapsReader
	return mr.Read(nil, pid)
}

// Read appends the mappings of the process to dst, like Maps.
func (mr *MapsReader) Read(dst []Map, pid int) ([]Map, error) {
	have := len(dst)
	err := withLeader(pid, func(pid int) error {
		var err error
		dst, err = mr.read(dst[:have], pid)
		if err == nil && len(dst) == have {
			err = ErrNoProgram
		}
		return err
	})
	if errors.Is(err, ErrNoProgram) {
		err = nil
	}
	return dst, err
}

func (mr *MapsReader) read(dst []Map, pid int) ([]Map, error) {
	have := len(dst)
	for {
		f, err := os.Open(file(pid, "maps"))
		if err != nil {
			return dst, explain(pid, "maps", err, ErrNoProgram)
		}
		dst, err = mr.Parse(dst[:have], f)
		cut := err == nil && len(dst) > have && emptied(f)
		f.Close()
		if errors.Is(err, syscall.ESRCH) {
			err = ErrGone
		}
		if err != nil {
			return dst, fmt.Errorf("maps of process %d: %w", pid, err)
		}
		if !cut {
			return dst, nil
		}
	}
}

// emptied reports whether the memory that f lists is gone, because of exec or the end of the
// process. A list that was read before may then be truncated.
func emptied(f *os.File) bool {
	var b [1]byte
	n, _ := f.ReadAt(b[:], 0)
	return n == 0
}

// Path returns a path through which the file that m maps can be opened from the caller's mount
// namespace, whatever became of its name. The path is below the process's root if that is still
// the mapped file, else below the caller's root if that is, else below /proc/PID/map_files.
// Opening the latter requires CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, and m must still be
// mapped with the same bounds. Path returns "" if m maps no file.
func Path(pid int, m Map) string {
	if !m.File() {
		return ""
	}
	if path, ok := namedPath(pid, &m); ok {
		return path
	}
	tid := pid
	if _, err := os.Lstat(mapFile(pid, &m)); err != nil {
		if other, ok := alive(pid); ok {
			tid = other
		}
	}
	return mapFile(tid, &m)
}

// mapFile returns the kernel's link to what is mapped at m.
func mapFile(pid int, m *Map) string {
	return file(pid, "map_files/"+strconv.FormatUint(m.Start, 16)+"-"+strconv.FormatUint(m.End, 16))
}

// namedPath finds the mapped file by its name.
func namedPath(pid int, m *Map) (string, bool) {
	if m.Deleted {
		return "", false
	}
	name := strings.ReplaceAll(m.Path, `\012`, "\n")
	for _, path := range []string{file(pid, "root") + name, name} {
		if isMapped(path, pid, m) {
			return path, true
		}
	}
	return "", false
}

// isMapped reports whether path is the file that m maps. It is if device and inode are equal.
// If they differ it may still be: a file system with several trees (btrfs) has another device
// number in maps than in stat, and a stacked one (overlayfs) has the device and inode of the
// layer below. Then the target of the kernel's link decides, because it passes through the same
// layers as path. Without the right to follow that link, the inode alone decides.
func isMapped(path string, pid int, m *Map) bool {
	var named, mapped unix.Stat_t
	if unix.Stat(path, &named) != nil || named.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	if named.Ino == m.Inode && unix.Major(named.Dev) == m.Major && unix.Minor(named.Dev) == m.Minor {
		return true
	}
	if unix.Stat(mapFile(pid, m), &mapped) == nil {
		return named.Dev == mapped.Dev && named.Ino == mapped.Ino
	}
	return named.Ino == m.Inode
}
