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

// Provider names events of a process.
type Provider struct {
	Name      string
	Keywords  uint64 // sets of events, as the provider defines them
	Level     uint32 // 1 critical to 5 verbose
	Arguments string // as "key=value;key=value"
}

// Config says what is streamed. The zero value but for Providers is without
// stacks.
type Config struct {
	BufferMB  uint32 // memory that the process may use for it; 0 for 256
	Providers []Provider
	Stacks    bool // with the stack of each event
	// Rundown tells at the end of the methods that were compiled, so that stacks
	// have names.
	Rundown bool
}

// RundownKeywords are those of a full rundown: methods and modules, with what
// places their code.
const RundownKeywords = 0x80020139

// stopTimeout is how long the rundown may take: it is read meanwhile.
const stopTimeout = 10 * time.Minute

const (
	usualBuffer  = 256
	formatV4     = 1
	maxProviders = 1000
)

// Session is a stream of events. Read delivers it, to io.EOF.
type Session struct {
	client *Client
	id     uint64
	conn   net.Conn
}

// ID is by which the process knows the session.
func (s *Session) ID() uint64 { return s.id }

// CollectTracing begins a session. The stream begins at once, and must be read
// then: the process waits for it when the session is to end. ctx is for the
// beginning alone.
func (c *Client) CollectTracing(ctx context.Context, config Config) (*Session, error) {
	if len(config.Providers) == 0 || len(config.Providers) > maxProviders {
		return nil, fmt.Errorf("a session takes 1 to %d providers, not %d", maxProviders, len(config.Providers))
	}
	var conn net.Conn
	var payload []byte
	var err error
	for _, cmd := range []command{cmdCollectTracing4, cmdCollectTracing3, cmdCollectTracing2} {
		if cmd == cmdCollectTracing2 && !config.Stacks {
			return nil, errors.New("the runtime is older than .NET 8, and does not stream events without stacks")
		}
		conn, payload, err = c.open(ctx, cmd, config.payload(cmd))
		if !unknownCommand(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("asking the runtime for its events: %w", err)
	}
	a := answer{data: payload}
	s := &Session{client: c, id: a.u64(), conn: conn}
	if a.bad {
		return nil, errors.Join(fmt.Errorf("asking the runtime for its events: %w: no session", ErrProtocol), conn.Close())
	}
	return s, nil
}

// payload is that of a command: all versions have the same but for what is
// between the format and the providers.
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
		err = fmt.Errorf("reading the events of the runtime: %w", err)
	}
	return n, err
}

// Stop ends the session: what is left of the stream comes, the rundown last, and
// then its end. Stop does not return before that is read, so another goroutine has
// to.
func (s *Session) Stop(ctx context.Context) error {
	patient := *s.client
	patient.Timeout = stopTimeout
	_, err := patient.ask(ctx, cmdStopTracing, binary.LittleEndian.AppendUint64(nil, s.id))
	if err != nil {
		return fmt.Errorf("telling the runtime to end its events: %w", err)
	}
	return nil
}

// Close drops the connection. A session that was not stopped ends by that, too,
// without its rundown. It may be closed twice.
func (s *Session) Close() error {
	if err := s.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
