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

// Find returns a Client for a running process in any namespace. It looks for the socket in the
// temporary folder as the process sees it. The error wraps ErrNoServer if there is none.
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
		return nil, fmt.Errorf("read the temporary folder %s of process %d: %w", folder, pid, err)
	case name == "" && foreign != "":
		return nil, fmt.Errorf("process %d has %w in %s: %s belongs to another user", pid, ErrNoServer, folder, foreign)
	case name == "":
		return nil, fmt.Errorf("process %d has %w in %s: it is not a .NET program, or DOTNET_EnableDiagnostics=0 is set", pid, ErrNoServer, folder)
	}
	exact := name == exactName(inner, stat.Start)
	return &Client{dial: func(ctx context.Context) (net.Conn, error) {
		// Connect through the open folder: the full path may be too long for a socket address,
		// and may lead elsewhere in this mount namespace.
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

// checkPeer returns an error if another user owns the server or, unless the name of the socket
// contains the time at which the process started, if another process does.
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
		return fmt.Errorf("its server belongs to user %d, not to the user of the process", peer.Uid)
	case !exact && peer.Pid != 0 && int(peer.Pid) != pid: // 0: the peer is in a PID namespace that is not visible here
		return fmt.Errorf("its server is process %d", peer.Pid)
	}
	return nil
}

// explainDial returns the error for a socket that cannot be connected to.
func explainDial(err error, pid int, name string) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("connect to %s of process %d: %w; run as its user or as root", name, pid, fs.ErrPermission)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w at %s of process %d any more", ErrNoServer, name, pid)
	}
	return fmt.Errorf("connect to %s of process %d: %w", name, pid, err)
}

// innerID returns the ID that a process has in its own namespace, which is part of the socket's
// name.
func innerID(pid int) (int, error) {
	status, err := proc.ReadStatus(pid)
	if err != nil || len(status.NSPID) == 0 {
		return pid, err
	}
	return status.NSPID[len(status.NSPID)-1], nil
}

// temporary returns the temporary folder of a process, as the process sees it. Runtimes use the
// value that TMPDIR had when they started.
func temporary(pid int) string {
	if folder := variable(pid, "TMPDIR"); folder != "" {
		return folder
	}
	return "/tmp"
}

// variable returns the value that an environment variable had when a process started; "" if it
// was not set or cannot be read. In the latter case, opening the folder fails as well.
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

// openIn opens a folder as a process sees it: symbolic links are resolved as they are for the
// process.
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

// The name of a socket contains the ID of the process and the time at which the process
// started.
const socketPrefix, socketSuffix = "dotnet-diagnostic-", "-socket"

// exactName returns the name of the socket of a process that started at a time, in ticks.
func exactName(id int, started uint64) string {
	return socketPrefix + strconv.Itoa(id) + "-" + strconv.FormatUint(started, 10) + socketSuffix
}

// socket returns the name of the socket of a process with the given ID that started at a time,
// in ticks. Sockets of processes that were killed may remain in the folder. If no socket has
// that time, the newest is returned. Everybody may be able to write to the folder, so sockets
// of other users are skipped; foreign is the name of one.
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
