package remote

import (
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// patience is how long a caller may take to send its request.
const patience = 5 * time.Second

// Listener receives requests.
type Listener struct {
	socket  *net.UnixListener
	pids    []int
	handle  func(Request) (string, error)
	running sync.WaitGroup
}

// Listen accepts requests for these processes until Close. handle executes a request and
// returns the answer, a single line. Several goroutines may call it.
func Listen(pids []int, handle func(Request) (string, error)) (*Listener, error) {
	name := fmt.Sprintf("%s%d", prefix, os.Getpid())
	socket, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: name, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("cannot accept requests from other runs of this program: %w", err)
	}
	l := &Listener{socket: socket, pids: slices.Clone(pids), handle: handle}
	l.running.Go(l.accept)
	return l, nil
}

// Close stops accepting requests. Requests that were read are answered first.
func (l *Listener) Close() error {
	err := l.socket.Close()
	l.running.Wait()
	return err
}

func (l *Listener) accept() {
	for {
		c, err := l.socket.AcceptUnix()
		if err != nil {
			return // closed
		}
		if uid, err := peer(c); err != nil || !trusted(uid, uint32(os.Geteuid())) {
			_ = c.Close()
			continue
		}
		l.running.Go(func() { l.serve(c) })
	}
}

func (l *Listener) serve(c *net.UnixConn) {
	defer func() { _ = c.Close() }()                // the answer was written, or the caller is gone
	_ = c.SetReadDeadline(time.Now().Add(patience)) // of a socket that is open
	b := make([]byte, maxMessage)
	n, err := c.Read(b)
	if err != nil {
		return
	}
	_, _ = c.Write([]byte(l.answer(string(b[:n])))) // the caller may be gone
}

func (l *Listener) answer(text string) string {
	r, ok := parse(text)
	if !ok {
		return failed + "unknown request"
	}
	if !slices.Contains(l.pids, r.PID) {
		return other
	}
	text, err := l.handle(r)
	if err != nil {
		return failed + err.Error()
	}
	return done + text
}
