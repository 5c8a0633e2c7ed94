package remote

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix begins the names of all sockets; the process ID of the listener follows.
const prefix = "@rtrace-bpf/"

// maxMessage is the size of the largest message, in bytes.
const maxMessage = 1024

// MaxName is the length of the longest name of a mark, in bytes.
const MaxName = 255

// Request is a request to a tracer. Without a mark it switches tracing on and off.
type Request struct {
	PID  int    // the traced process
	Mark string // the name of the mark to set; empty to toggle
}

// Check returns an error if the request is invalid.
func (r *Request) Check() error {
	switch {
	case r.PID <= 0:
		return fmt.Errorf("process id %d is not positive", r.PID)
	case len(r.Mark) > MaxName:
		return fmt.Errorf("the name of a mark has %d bytes, at most %d fit", len(r.Mark), MaxName)
	case strings.ContainsFunc(r.Mark, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fmt.Errorf("the name %q of a mark contains control characters", r.Mark)
	}
	return nil
}

func (r *Request) text() string {
	if r.Mark == "" {
		return fmt.Sprintf("toggle %d", r.PID)
	}
	return fmt.Sprintf("mark %d %s", r.PID, r.Mark)
}

func parse(text string) (r Request, ok bool) {
	verb, rest, _ := strings.Cut(text, " ")
	pid, mark, hasName := strings.Cut(rest, " ")
	var err error
	if r.PID, err = strconv.Atoi(pid); err != nil || r.Check() != nil {
		return r, false
	}
	switch verb {
	case "toggle":
		return r, !hasName
	case "mark":
		r.Mark = mark
		return r, mark != "" && r.Check() == nil
	}
	return r, false
}

// The beginnings of answers.
const (
	done   = "done "
	failed = "failed "
	other  = "other" // the process is not traced by this one
)

// peer returns the user at the other end.
func peer(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var errCred error
	if err := raw.Control(func(fd uintptr) {
		cred, errCred = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if errCred != nil {
		return 0, errCred
	}
	return cred.Uid, nil
}

// trusted reports whether this program accepts requests and answers from a user.
func trusted(uid, own uint32) bool { return uid == 0 || uid == own }
