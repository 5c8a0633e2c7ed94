package dotnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Provider selects events of a process.
type Provider struct {
	Name      string
	Keywords  uint64 // sets of events, as the provider defines them
	Level     uint32 // 1 critical to 5 verbose
	Arguments string // such as "key=value;key=value"
}

// Config is what a session streams. By default it streams no stacks.
type Config struct {
	BufferMB  uint32 // MiB of memory that the process may use for the session; 0 means 256
	Providers []Provider
	Stacks    bool // stream the stack of each event
	// Rundown ends the stream with the methods that were compiled, so that frames have names.
	Rundown bool
}

// RundownKeywords select a full rundown: methods and modules, and where their code is.
const RundownKeywords = 0x80020139

// stopTimeout is how long the rundown may take. It is read in the meantime.
const stopTimeout = 10 * time.Minute

const (
	usualBuffer  = 256
	formatV4     = 1
	maxProviders = 1000
)

// Session is a stream of events. Read returns it, up to io.EOF.
type Session struct {
	client *Client
	id     uint64
	conn   net.Conn
}

// ID returns the ID by which the process knows the session.
func (s *Session) ID() uint64 { return s.id }

// CollectTracing starts a session. The stream starts at once, and the caller must read it: the
// process waits for the reader when the session ends. ctx applies only to the start.
func (c *Client) CollectTracing(ctx context.Context, config Config) (*Session, error) {
	if len(config.Providers) == 0 || len(config.Providers) > maxProviders {
		return nil, fmt.Errorf("a session takes 1 to %d providers, not %d", maxProviders, len(config.Providers))
	}
	var conn net.Conn
	var payload []byte
	var err error
	for _, cmd := range []command{cmdCollectTracing4, cmdCollectTracing3, cmdCollectTracing2} {
		if cmd == cmdCollectTracing2 && !config.Stacks {
			return nil, errors.New("the .NET runtime is older than .NET 8 and cannot stream events without stacks")
		}
		conn, payload, err = c.open(ctx, cmd, config.payload(cmd))
		if !unknownCommand(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get events from the .NET runtime: %w", err)
	}
	a := answer{data: payload}
	s := &Session{client: c, id: a.u64(), conn: conn}
	if a.bad {
		return nil, errors.Join(fmt.Errorf("cannot get events from the .NET runtime: %w: no session", ErrProtocol), conn.Close())
	}
	return s, nil
}

// payload returns the payload of a command. Its versions differ only between the format and the
// providers.
func (c *Config) payload(cmd command) []byte {
	buffer := c.BufferMB
	if buffer == 0 {
		buffer = usualBuffer
	}
	b := binary.LittleEndian.AppendUint32(nil, buffer)
	b = binary.LittleEndian.AppendUint32(b, formatV4)
	switch cmd {
	case cmdCollectTracing4:
		var keywords uint64
		if c.Rundown {
			keywords = RundownKeywords
		}
		b = binary.LittleEndian.AppendUint64(b, keywords)
		b = append(b, flag(c.Stacks))
	case cmdCollectTracing3:
		b = append(b, flag(c.Rundown), flag(c.Stacks))
	case cmdCollectTracing2:
		b = append(b, flag(c.Rundown))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Providers)))
	for _, p := range c.Providers {
		b = binary.LittleEndian.AppendUint64(b, p.Keywords)
		b = binary.LittleEndian.AppendUint32(b, p.Level)
		b = appendString(b, p.Name)
		b = appendString(b, p.Arguments)
	}
	return b
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Read implements io.Reader.
func (s *Session) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read events of the .NET runtime: %w", err)
	}
	return n, err
}

// Stop ends the session. The rest of the stream follows, with the rundown last, and then
// io.EOF. Stop returns only after that was read, so another goroutine must read.
func (s *Session) Stop(ctx context.Context) error {
	patient := *s.client
	patient.Timeout = stopTimeout
	_, err := patient.ask(ctx, cmdStopTracing, binary.LittleEndian.AppendUint64(nil, s.id))
	if err != nil {
		return fmt.Errorf("cannot end the events of the .NET runtime: %w", err)
	}
	return nil
}

// Close closes the connection. A session that was not stopped then ends without its rundown.
// Close may be called twice.
func (s *Session) Close() error {
	if err := s.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
