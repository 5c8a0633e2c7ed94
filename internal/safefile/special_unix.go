//go:build unix

package safefile

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// unblocked prevents the opening of a FIFO from waiting for its other end, and
// the opening of a terminal from making it our controlling terminal.
const unblocked = syscall.O_NONBLOCK | syscall.O_NOCTTY

// OpenSpecial opens the FIFO, socket or character device at path for writing.
// For a regular file it returns fs.ErrExist. It follows a symbolic link only if
// it stands for a descriptor of a process, such as /dev/stdout. If a FIFO has
// no reader, OpenSpecial calls waits, unless that is nil, and waits for a
// reader. If ctx ends first, the error is ErrNoReader.
func OpenSpecial(ctx context.Context, path string, waits func()) (*os.File, error) {
	f, err := openSpecial(ctx, path, waits)
	return f, pathError(path, err)
}

func openSpecial(ctx context.Context, path string, waits func()) (*os.File, error) {
	noFollow, look := syscall.O_NOFOLLOW, os.Lstat
	if IsDescriptor(path) {
		noFollow, look = 0, os.Stat
	}
	info, err := look(path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkSpecial(info.Mode()), checkOwner(path, info)); err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSocket != 0 {
		return dial(path)
	}
	flags := os.O_WRONLY | noFollow | syscall.O_NOCTTY
	var f *os.File
	if info.Mode()&fs.ModeNamedPipe != 0 {
		f, err = openFIFO(ctx, path, flags, waits)
	} else {
		f, err = os.OpenFile(path, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	// Another file may have taken its place since.
	if info, err = f.Stat(); err == nil {
		err = errors.Join(checkSpecial(info.Mode()), checkOwner(path, info))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openFIFO opens a FIFO for writing as soon as it has a reader.
func openFIFO(ctx context.Context, path string, flags int, waits func()) (*os.File, error) {
	switch f, err := os.OpenFile(path, flags|unblocked, 0); {
	case err == nil:
		defer f.Close() // after the one below is open, so that the reader does not see the end
	case !errors.Is(err, syscall.ENXIO):
		return nil, err
	case waits != nil:
		waits()
	}
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() {
		f, err := os.OpenFile(path, flags, 0)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
	}
	go func() {
		if r := <-opened; r.err == nil {
			_ = r.f.Close() // nothing was written to it
		}
	}()
	// Opening it for reading ends the wait of the goroutine.
	if f, err := os.OpenFile(path, flags&^os.O_WRONLY|os.O_RDWR|unblocked, 0); err == nil {
		_ = f.Close()
	}
	return nil, ErrNoReader
}

// dial connects to a socket.
func dial(path string) (*os.File, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	f, err := conn.File()
	return f, errors.Join(err, conn.Close())
}

// IsDescriptor reports whether path is the kernel's name for an open file of a
// process, or a link of the system to one.
func IsDescriptor(path string) bool {
	path = filepath.Clean(path)
	switch path {
	case "/dev/stdout", "/dev/stderr":
		return true
	}
	dir := filepath.Dir(path)
	return dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") && strings.HasSuffix(dir, "/fd")
}

// checkOwner returns an error for a file that another user has put into a
// folder where everybody can create files, possibly to read along.
func checkOwner(path string, info fs.FileInfo) error {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	return checkOwnerIn(dir, info)
}

func checkOwnerIn(dir, info fs.FileInfo) error {
	if dir.Mode()&fs.ModeSticky == 0 || !everybodys(dir) || Ours(info) {
		return nil
	}
	return errForeign
}

var errForeign = errors.New("it belongs to another user and is in a folder that everybody can write to")

// everybodys reports whether everybody can write to a folder.
func everybodys(dir fs.FileInfo) bool {
	const others = 0o002
	return dir.Mode().Perm()&others != 0
}

// Ours reports whether a file belongs to the user, to root or to the user who called
// sudo.
func Ours(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	uid, _, sudo := invoker()
	n := int(owner.Uid)
	return n == 0 || n == os.Geteuid() || sudo && n == uid
}
