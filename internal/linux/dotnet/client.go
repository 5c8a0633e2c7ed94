package dotnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Client asks the server of one process. Its methods may be called by several
// goroutines.
type Client struct {
	// Timeout is how long an answer may take; 0 means 10 seconds. A process that
	// is stopped does not answer at all.
	Timeout time.Duration

	dial func(ctx context.Context) (net.Conn, error)
}

// usualTimeout is that of Client.Timeout.
const usualTimeout = 10 * time.Second

// Info is what a server tells of its process.
type Info struct {
	PID         uint64   // in the process's own namespace
	Cookie      [16]byte // another for each start of a runtime
	CommandLine string
	OS          string
	Arch        string
	Entry       string // name of the program's assembly; empty before .NET 6
	Version     string // of the runtime; empty before .NET 6
	Platform    string // as "linux-x64"; empty before .NET 8
}

// ProcessInfo asks what runs in the process.
func (c *Client) ProcessInfo(ctx context.Context) (*Info, error) {
	var payload []byte
	var err error
	var cmd command
	for _, cmd = range []command{cmdProcessInfo3, cmdProcessInfo2, cmdProcessInfo} {
		if payload, err = c.ask(ctx, cmd, nil); !unknownCommand(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("asking the runtime what it is: %w", err)
	}
	a := answer{data: payload}
	if cmd == cmdProcessInfo3 {
		a.u32() // version of the answer
	}
	i := &Info{PID: a.u64()}
	copy(i.Cookie[:], a.bytes(len(i.Cookie)))
	i.CommandLine, i.OS, i.Arch = a.text(), a.text(), a.text()
	if cmd != cmdProcessInfo {
		i.Entry, i.Version = a.text(), a.text()
	}
	if cmd == cmdProcessInfo3 {
		i.Platform = a.text()
	}
	if a.bad {
		return nil, fmt.Errorf("asking the runtime what it is: %w: %d bytes are too few", ErrProtocol, len(payload))
	}
	return i, nil
}

// perfMapOnly is the type of perf map that has the functions of compiled code and
// nothing else.
const perfMapOnly = 3

// EnablePerfMap makes the process write the functions that it has compiled, and
// those that it compiles from then on, into perf-PID.map in /tmp.
func (c *Client) EnablePerfMap(ctx context.Context) error {
	_, err := c.ask(ctx, cmdEnablePerfMap, []byte{perfMapOnly, 0, 0, 0})
	if unknownCommand(err) {
		return errors.New("the runtime is older than .NET 8, and writes a perf map only if it is started with DOTNET_PerfMapEnabled=3")
	}
	if err != nil {
		return fmt.Errorf("asking the runtime for a perf map: %w", err)
	}
	return nil
}

// DisablePerfMap ends what EnablePerfMap has begun.
func (c *Client) DisablePerfMap(ctx context.Context) error {
	if _, err := c.ask(ctx, cmdDisablePerfMap, nil); err != nil {
		return fmt.Errorf("telling the runtime to end its perf map: %w", err)
	}
	return nil
}

// ask sends a command and returns the payload of the answer.
func (c *Client) ask(ctx context.Context, cmd command, payload []byte) ([]byte, error) {
	conn, answer, err := c.open(ctx, cmd, payload)
	if err != nil {
		return nil, err
	}
	return answer, conn.Close()
}

// open sends a command and returns the connection behind the answer.
func (c *Client) open(ctx context.Context, cmd command, payload []byte) (net.Conn, []byte, error) {
	message, err := appendMessage(nil, cmd, payload)
	if err != nil {
		return nil, nil, err
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = usualTimeout
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := c.dial(within)
	if err != nil {
		return nil, nil, c.slow(ctx, err, timeout)
	}
	// The end of ctx ends waiting, too.
	done := context.AfterFunc(within, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_, err = conn.Write(message)
	var answer []byte
	if err == nil {
		answer, err = readAnswer(conn)
	}
	if !done() && err == nil {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		return nil, nil, errors.Join(c.slow(ctx, err, timeout), conn.Close())
	}
	return conn, answer, nil
}

// slow says what the end of waiting means.
func (c *Client) slow(ctx context.Context, err error, timeout time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it does not answer within %v; is the process stopped?", timeout)
	}
	return err
}
