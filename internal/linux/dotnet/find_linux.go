package dotnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
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
	owners, err := proc.FileOwners(pid)
	if err != nil {
		return nil, err
	}
	name, foreign, err := socket(dir, inner, stat.Start, owners)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look into the temporary folder %s of process %d: %w", folder, pid, err)
	case name == "" && foreign != "":
		return nil, fmt.Errorf("process %d has %w in %s: %s was made by another user", pid, ErrNoServer, folder, foreign)
	case name == "":
		return nil, fmt.Errorf("process %d has %w in %s: it is no program of .NET, or DOTNET_EnableDiagnostics=0 is set", pid, ErrNoServer, folder)
	}
	exact := name == exactName(inner, stat.Start)
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
		if err := checkPeer(conn, pid, exact, owners); err != nil {
			return nil, errors.Join(fmt.Errorf("connect to %s of process %d: %w", path.Join(folder, name), pid, err), conn.Close())
		}
		return conn, nil
	}}, nil
}

// checkPeer refuses a server that another user listens with, and if the name of the
// socket does not have the time at which the process was started, one of another
// process.
func checkPeer(conn net.Conn, pid int, exact bool, owners proc.Owners) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil || err != nil {
		return errors.Join(e, err)
	}
	switch {
	case !owners.Has(peer.Uid):
		return fmt.Errorf("user %d listens, who is not that of the process", peer.Uid)
	case !exact && peer.Pid != 0 && int(peer.Pid) != pid: // 0: it cannot be seen from here
		return fmt.Errorf("process %d listens", peer.Pid)
	}
	return nil
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

// The name of a socket, around the id of the process and the time at which it was
// started.
const socketPrefix, socketSuffix = "dotnet-diagnostic-", "-socket"

// exactName is the name of the socket of a process that was started at a time, in ticks.
func exactName(id int, started uint64) string {
	return socketPrefix + strconv.Itoa(id) + "-" + strconv.FormatUint(started, 10) + socketSuffix
}

// socket returns the name of the socket of a process that has the id and was
// started at a time, in ticks: those of processes that were killed may be left. If
// none has that time the newest is taken. The folder may be everybody's: what is none
// of the owners' is left out, and foreign is one such.
func socket(dir *os.File, id int, started uint64, owners proc.Owners) (name, foreign string, err error) {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return "", "", err
	}
	prefix, exact := socketPrefix+strconv.Itoa(id)+"-", exactName(id, started)
	var at time.Time
	for _, n := range names {
		if !strings.HasPrefix(n, prefix) || !strings.HasSuffix(n, socketSuffix) {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(int(dir.Fd()), n, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
			continue
		}
		if !owners.Has(st.Uid) {
			foreign = n
			continue
		}
		if n == exact {
			return n, "", nil
		}
		if t := time.Unix(st.Mtim.Unix()); name == "" || t.After(at) {
			name, at = n, t
		}
	}
	return name, foreign, nil
}
