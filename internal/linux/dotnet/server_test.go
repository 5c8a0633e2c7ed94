package dotnet

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// exchange is a request and the answer of a .NET 10.0.9 runtime.
type exchange struct{ request, response []byte }

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// exchanges returns recorded exchanges, by name.
func exchanges(t testing.TB) map[string]exchange {
	t.Helper()
	text, err := os.ReadFile("testdata/ipc-exchanges.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]struct{ Request, Response string }
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	all := map[string]exchange{}
	for name, e := range recorded {
		all[name] = exchange{unhex(t, e.Request), unhex(t, e.Response)}
	}
	return all
}

// server acts as a runtime: it sends recorded answers, and streams.
type server struct {
	t        testing.TB
	answers  map[string][]byte // by request
	unknown  map[command]bool  // commands that it does not know
	stream   []byte
	held     int // bytes of the stream that follow after it is stopped
	silent   bool
	listener net.Listener

	mu       sync.Mutex
	requests [][]byte
	stopped  chan struct{}
	drained  chan struct{}
}

// serve starts a server and returns a client for it.
func serve(t testing.TB, s *server) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	var err error
	if s.listener, err = net.Listen("unix", path); err != nil {
		t.Fatal(err)
	}
	s.t, s.stopped, s.drained = t, make(chan struct{}), make(chan struct{})
	if s.answers == nil {
		s.answers = map[string][]byte{}
		for _, e := range exchanges(t) {
			s.answers[string(e.request)] = e.response
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.handle(conn) })
		}
	})
	t.Cleanup(func() {
		s.listener.Close()
		running.Wait()
	})
	return &Client{dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
}

// session is the ID of all sessions.
const session = 0x1234567890

func (s *server) handle(conn net.Conn) {
	defer conn.Close()
	head := make([]byte, headSize)
	if _, err := io.ReadFull(conn, head); err != nil {
		return
	}
	request := append(head, make([]byte, int(binary.LittleEndian.Uint16(head[14:]))-headSize)...)
	if _, err := io.ReadFull(conn, request[headSize:]); err != nil {
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	if s.silent {
		_, _ = conn.Read(head) // until the client gives up
		return
	}
	cmd := command(request[16])<<8 | command(request[17])
	id := binary.LittleEndian.AppendUint64(nil, session)
	ok, _ := appendMessage(nil, answerOK, id)
	answer := s.answers[string(request)]
	switch {
	case s.unknown[cmd] || answer == nil && cmd != cmdStopTracing && cmd>>8 != 2:
		answer, _ = appendMessage(nil, answerError, []byte{0x85, 0x13, 0x13, 0x80})
	case answer != nil:
	case cmd == cmdStopTracing:
		if !bytes.Equal(request[headSize:], id) {
			s.t.Errorf("stop of session % x", request[headSize:])
		}
		close(s.stopped)
		<-s.drained // like the runtime
		answer = ok
	default:
		_, _ = conn.Write(append(ok, s.stream[:len(s.stream)-s.held]...))
		if s.held > 0 {
			<-s.stopped
			_, _ = conn.Write(s.stream[len(s.stream)-s.held:])
			close(s.drained)
		}
		return
	}
	_, _ = conn.Write(answer)
}
