package dotnet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// PerfMap is the file that EnablePerfMap makes a process write. It can be opened even after the
// process has ended.
type PerfMap struct {
	Path string // as the process names it
	// Lasting reports that the process was started with a perf map, which should therefore not
	// be ended.
	Lasting bool

	dir    *os.File
	name   string
	owners proc.Owners // of the process when it was running
}

// perfMapFolder is the default folder of perf maps. TMPDIR does not apply to them, because perf
// looks for them there.
const perfMapFolder = "/tmp"

// FindPerfMap finds where a process writes its perf map. The caller must close the result.
func FindPerfMap(pid int) (*PerfMap, error) {
	inner, err := innerID(pid)
	if err != nil {
		return nil, err
	}
	folder := cmp.Or(variable(pid, "DOTNET_PerfMapJitDumpPath"), variable(pid, "COMPlus_PerfMapJitDumpPath"), perfMapFolder)
	dir, err := openIn(pid, folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s of process %d: %w", folder, pid, err)
	}
	owners, err := proc.FileOwners(pid)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	enabled := cmp.Or(variable(pid, "DOTNET_PerfMapEnabled"), variable(pid, "COMPlus_PerfMapEnabled"), "0")
	name := fmt.Sprintf("perf-%d.map", inner)
	return &PerfMap{Path: path.Join(folder, name), Lasting: enabled != "0", dir: dir, name: name, owners: owners}, nil
}

// Open opens the file. It follows no links and refuses files of users other than the process's,
// because everybody may be able to write to the folder.
func (p *PerfMap) Open() (*os.File, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), p.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the perf map %s: %w", p.Path, err)
	}
	f := os.NewFile(uintptr(fd), p.Path)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open the perf map %s: not a regular file: %w", p.Path, fs.ErrInvalid)
	}
	if err == nil && !p.owners.Made(info) {
		err = fmt.Errorf("open the perf map %s: it belongs to another user than the process: %w", p.Path, fs.ErrPermission)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close closes the folder.
func (p *PerfMap) Close() error { return p.dir.Close() }
