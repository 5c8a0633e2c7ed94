package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// ErrNotTraced reports that no tracer can be reached for a process.
var ErrNotTraced = errors.New("not traced by a rtrace-bpf that can be reached from here")

// Send sends a request to all tracers of a process and returns their answers. It waits until they
// have executed it, or ctx ends. The error is ErrNotTraced if the process has no tracer.
func Send(ctx context.Context, r Request) (answers []string, err error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	names, err := sockets()
	if err != nil {
		return nil, err
	}
	traced := false
	for _, name := range names {
		answer, err := ask(ctx, name, r.text())
		if ctx.Err() != nil {
			return answers, ctx.Err()
		}
		if err != nil || answer == other {
			continue // it has just ended, is not a tracer, or traces other processes
		}
		traced = true
		if text, ok := strings.CutPrefix(answer, done); ok {
			answers = append(answers, text)
			continue
		}
		return answers, errors.New(strings.TrimPrefix(answer, failed))
	}
	if !traced {
		return nil, fmt.Errorf("process %d: %w", r.PID, ErrNotTraced)
	}
	return answers, nil
}

// sockets returns the names of the sockets of all tracers.
func sockets() (names []string, err error) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("look for running tracers: %w", err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		_, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), prefix)
		name = prefix + name
		if ok && !seen[name] { // a socket's connections have the same name
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// ask sends a text to a tracer and returns its answer.
func ask(ctx context.Context, name, text string) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unixpacket", name)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if uid, err := peer(conn.(*net.UnixConn)); err != nil || !trusted(uid, uint32(os.Geteuid())) {
		return "", errors.Join(err, errors.New("not a tracer of this user"))
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		return "", err
	}
	b := make([]byte, maxMessage)
	n, err := conn.Read(b)
	return string(b[:n]), err
}
