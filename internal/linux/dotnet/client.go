package dotnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Client sends commands to the server of one process. Several goroutines may call its methods.
type Client struct {
	// Timeout is how long an answer may take; 0 means 10 seconds. A stopped process never
	// answers.
	Timeout time.Duration

	dial func(ctx context.Context) (net.Conn, error)
}

// usualTimeout is the default of Client.Timeout.
const usualTimeout = 10 * time.Second

// Info is what a server reports about its process.
type Info struct {
	PID         uint64   // in the process's own namespace
	Cookie      [16]byte // different for each start of a runtime
	CommandLine string
	OS          string
	Arch        string
	Entry       string // name of the program's assembly; empty before .NET 6
	Version     string // of the runtime; empty before .NET 6
	Platform    string // such as "linux-x64"; empty before .NET 8
}

// ProcessInfo asks the server for information about the process.
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
		return nil, fmt.Errorf("cannot get information from the .NET runtime: %w", err)
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
		return nil, fmt.Errorf("cannot get information from the .NET runtime: %w: only %d bytes", ErrProtocol, len(payload))
	}
	return i, nil
}

// perfMapOnly is the type of perf map that contains only the functions of compiled code.
const perfMapOnly = 3

// EnablePerfMap makes the process write the functions that it has compiled, and those that it
// compiles from then on, to perf-PID.map in /tmp.
func (c *Client) EnablePerfMap(ctx context.Context) error {
	_, err := c.ask(ctx, cmdEnablePerfMap, []byte{perfMapOnly, 0, 0, 0})
	if unknownCommand(err) {
		return errors.New("the .NET runtime is older than .NET 8: start the program with DOTNET_PerfMapEnabled=3 to get a perf map")
	}
	if err != nil {
		return fmt.Errorf("cannot get a perf map from the .NET runtime: %w", err)
	}
	return nil
}

// DisablePerfMap ends the perf map that EnablePerfMap started.
func (c *Client) DisablePerfMap(ctx context.Context) error {
	if _, err := c.ask(ctx, cmdDisablePerfMap, nil); err != nil {
		return fmt.Errorf("cannot end the perf map of the .NET runtime: %w", err)
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

// open sends a command and returns the payload of the answer, and the connection, positioned
// after the answer.
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
	// Stop waiting when ctx ends.
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

// slow returns the error for an expired deadline.
func (c *Client) slow(ctx context.Context, err error, timeout time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v; is the process stopped?", timeout)
	}
	return err
}
