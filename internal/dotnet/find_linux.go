package dotnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/proc"
)

// Find returns a Client for a running process, whatever namespaces that is in:
// its socket is looked for in what it sees as its temporary folder. The error
// wraps ErrNoServer if there is none.
func Find(pid int) (*Client, error) {
	stat, err := proc.ReadStat(pid)
	if err != nil {
		return nil, err
	}
	inner, err := innerID(pid)
	if err != nil {
		return nil, err
	}
	folder := temporary(pid)
	dir, err := openIn(pid, folder)
	if err != nil {
		return nil, fmt.Errorf("open the temporary folder %s of process %d: %w", folder, pid, err)
	}
	defer dir.Close()
	name, err := socket(dir, inner, stat.Start)
	if err != nil {
		return nil, fmt.Errorf("look into the temporary folder %s of process %d: %w", folder, pid, err)
	}
	if name == "" {
		return nil, fmt.Errorf("process %d has %w in %s: it is no program of .NET, or DOTNET_EnableDiagnostics=0 is set", pid, ErrNoServer, folder)
	}
	return &Client{dial: func(ctx context.Context) (net.Conn, error) {
		// By way of the folder: the whole path may be longer than the address of
		// a socket can be, and mean another place here.
		dir, err := openIn(pid, folder)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name))
		if err != nil {
			return nil, explainDial(err, pid, path.Join(folder, name))
		}
		return conn, nil
	}}, nil
}

// explainDial says why a socket cannot be connected to.
func explainDial(err error, pid int, name string) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("connect to %s of process %d: %w; only its user and root may", name, pid, fs.ErrPermission)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w behind %s of process %d any more", ErrNoServer, name, pid)
	}
	return fmt.Errorf("connect to %s of process %d: %w", name, pid, err)
}

// innerID returns the id that a process has in its own namespace, by which it
// names its socket.
func innerID(pid int) (int, error) {
	status, err := proc.ReadStatus(pid)
	if err != nil || len(status.NSPID) == 0 {
		return pid, err
	}
	return status.NSPID[len(status.NSPID)-1], nil
}

// temporary returns the temporary folder of a process, as it sees it: runtimes
// take what TMPDIR was when they started.
func temporary(pid int) string {
	if folder := variable(pid, "TMPDIR"); folder != "" {
		return folder
	}
	return "/tmp"
}

// variable returns what a variable was in the environment of a process when that
// started; empty if it was not set. What cannot be read shows again at the folder.
func variable(pid int, name string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return ""
	}
	for v := range strings.SplitSeq(string(text), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok && value != "" {
			return value
		}
	}
	return ""
}

// openIn opens a folder of a process as that sees it: links in it lead where they
// lead the process.
func openIn(pid int, folder string) (*os.File, error) {
	base := "root"
	if !path.IsAbs(folder) {
		base = "cwd"
	}
	root, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, base), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if base == "cwd" {
		how.Resolve = unix.RESOLVE_NO_MAGICLINKS
	}
	fd, err := unix.Openat2(int(root.Fd()), folder, &how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), folder), nil
}

// socket returns the name of the socket of a process that has the id and was
// started at a time, in ticks: those of processes that were killed may be left. If
// none has that time the newest is taken.
func socket(dir *os.File, id int, started uint64) (string, error) {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return "", err
	}
	prefix, suffix := fmt.Sprintf("dotnet-diagnostic-%d-", id), "-socket"
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) || !strings.HasSuffix(n, suffix) })
	if exact := prefix + strconv.FormatUint(started, 10) + suffix; slices.Contains(names, exact) {
		return exact, nil
	}
	var newest string
	var at time.Time
	for _, n := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(int(dir.Fd()), n, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
			continue
		}
		if t := time.Unix(st.Mtim.Unix()); newest == "" || t.After(at) {
			newest, at = n, t
		}
	}
	return newest, nil
}
