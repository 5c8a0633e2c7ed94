package dotnet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProcessInfo(t *testing.T) {
	want := Info{
		PID: 22133, CommandLine: "/opt/app/azmcp /opt/app/azmcp.dll server start", OS: "Linux", Arch: "x64",
		Cookie: [16]byte{0xf2, 0xa9, 0xea, 0x1a, 0x8d, 0x49, 0xff, 0x40, 0xbc, 0x77, 0xdf, 0x18, 0x19, 0xc3, 0x28, 0x9a},
	}
	for name, tt := range map[string]struct {
		unknown  map[command]bool
		add      func(*Info)
		requests int
	}{
		"ProcessInfo3": {nil, func(i *Info) { i.Entry, i.Version, i.Platform = "azmcp", "10.0.9", "linux-x64" }, 1},
		"ProcessInfo2": {map[command]bool{cmdProcessInfo3: true}, func(i *Info) { i.Entry, i.Version = "azmcp", "10.0.9" }, 2},
		"ProcessInfo":  {map[command]bool{cmdProcessInfo3: true, cmdProcessInfo2: true}, func(*Info) {}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{unknown: tt.unknown}
			got, err := serve(t, s).ProcessInfo(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := want
			tt.add(&want)
			if d := cmp.Diff(&want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(s.requests) != tt.requests || !bytes.Equal(s.requests[tt.requests-1], exchanges(t)[name].request) {
				t.Errorf("requests %x", s.requests)
			}
		})
	}
}

// The bytes of commands equal those that were recorded.
func TestRequests(t *testing.T) {
	recorded := exchanges(t)
	s := &server{}
	c := serve(t, s)
	if err := errors.Join(c.EnablePerfMap(t.Context()), c.DisablePerfMap(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"enableperfmap-3", "disableperfmap"} {
		if !bytes.Equal(s.requests[i], recorded[name].request) {
			t.Errorf("%s: %x, want %x", name, s.requests[i], recorded[name].request)
		}
	}
	// The recorded session asks for a format that does not exist; ours is 1.
	config := Config{BufferMB: 64, Stacks: true, Providers: []Provider{{Name: "Microsoft-Windows-DotNETRuntime", Keywords: 1, Level: 5}}}
	got, err := appendMessage(nil, cmdCollectTracing2, config.payload(cmdCollectTracing2))
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(recorded["collect-format-2"].request)
	if want[headSize+4] != 2 {
		t.Fatal("the recorded session asks for another format")
	}
	want[headSize+4] = 1
	if !bytes.Equal(got, want) {
		t.Errorf("collect: %x, want %x", got, want)
	}
	// The later ones differ between the format and the providers.
	config.Rundown = true
	for cmd, between := range map[command]string{
		cmdCollectTracing2: "\x01", cmdCollectTracing3: "\x01\x01", cmdCollectTracing4: "\x39\x01\x02\x80\x00\x00\x00\x00\x01",
	} {
		want := string(want[headSize:headSize+8]) + between + string(want[headSize+9:])
		if got := string(config.payload(cmd)); got != want {
			t.Errorf("%04x: %x, want %x", cmd, got, want)
		}
	}
	stop := recorded["stop-bogus"].request
	if got, _ := appendMessage(nil, cmdStopTracing, binary.LittleEndian.AppendUint64(nil, 0x1234)); !bytes.Equal(got, stop) {
		t.Errorf("stop: %x, want %x", got, stop)
	}
}

// Recorded answers that are errors.
func TestErrors(t *testing.T) {
	for name, want := range map[string]string{
		"unknown-command": "unknown command (0x80131385)", "unknown-set": "unknown command (0x80131385)",
		"bad-magic": "unsupported version of the protocol (0x80131386)", "collect-format-2": "cannot read the command's payload (0x80131384)",
	} {
		_, err := readAnswer(bytes.NewReader(exchanges(t)[name].response))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if got := (&Error{0x80001234}).Error(); got != "error 0x80001234" {
		t.Error(got)
	}
}

// stream is a stream of events, long enough that no socket holds it.
func stream() []byte { return append(bytes.Repeat([]byte("Nettrace"), 1<<18), 1) }

// A session streams until it is stopped and then to its end, with each version of the command
// that the runtime knows.
func TestCollect(t *testing.T) {
	for name, unknown := range map[string]map[command]bool{
		"4": nil, "3": {cmdCollectTracing4: true}, "2": {cmdCollectTracing4: true, cmdCollectTracing3: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{unknown: unknown, stream: stream(), held: 1 << 20}
			c := serve(t, s)
			session1, err := c.CollectTracing(t.Context(), Config{Stacks: true, Rundown: true, Providers: []Provider{{Name: "P", Level: 5}}})
			if err != nil {
				t.Fatal(err)
			}
			defer session1.Close()
			if session1.ID() != session {
				t.Errorf("session %x", session1.ID())
			}
			begin := make([]byte, len(s.stream)-s.held)
			if _, err := io.ReadFull(session1, begin); err != nil {
				t.Fatal(err)
			}
			stopped := make(chan error, 1)
			go func() { stopped <- session1.Stop(t.Context()) }()
			rest, err := io.ReadAll(session1)
			if err != nil || !bytes.Equal(append(begin, rest...), s.stream) {
				t.Errorf("%d bytes, want %d, %v", len(begin)+len(rest), len(s.stream), err)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCollectRefused(t *testing.T) {
	s := &server{unknown: map[command]bool{cmdCollectTracing4: true, cmdCollectTracing3: true, cmdCollectTracing2: true, cmdEnablePerfMap: true}}
	c := serve(t, s)
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"none":      {Config{}, "takes 1 to 1000 providers, not 0"},
		"old":       {Config{Stacks: true, Providers: []Provider{{Name: "P"}}}, "cannot get events from the .NET runtime: unknown command"},
		"no stacks": {Config{Providers: []Provider{{Name: "P"}}}, "older than .NET 8"},
		"too long":  {Config{Providers: []Provider{{Name: strings.Repeat("x", 40000)}}}, "too long for the protocol"},
	} {
		if _, err := c.CollectTracing(t.Context(), tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if err := c.EnablePerfMap(t.Context()); err == nil || !strings.Contains(err.Error(), "older than .NET 8") {
		t.Error(err)
	}
}

// Any malformed answer results in one error.
func TestBadAnswers(t *testing.T) {
	request := exchanges(t)["ProcessInfo3"]
	for name, response := range map[string][]byte{
		"nothing": {}, "cut": request.response[:10], "cut in the payload": request.response[:40],
		"other": []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "size": append([]byte(magic), 3, 0, 0xff, 0, 0, 0),
		"short error": append([]byte(magic), 21, 0, 0xff, 0xff, 0, 0, 7), "empty": append([]byte(magic), 20, 0, 0xff, 0, 0, 0),
		"long text": append([]byte(magic), append([]byte{52, 0, 0xff, 0, 0, 0}, append(make([]byte, 28), 0xff, 0xff, 0xff, 0xff)...)...),
	} {
		c := serve(t, &server{answers: map[string][]byte{string(request.request): response}})
		if _, err := c.ProcessInfo(t.Context()); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A stopped process does not answer. The client waits no longer than its timeout or the context
// allows.
func TestSilence(t *testing.T) {
	c := serve(t, &server{silent: true})
	c.Timeout = time.Millisecond
	if _, err := c.ProcessInfo(t.Context()); err == nil || !strings.Contains(err.Error(), "is the process stopped?") {
		t.Error(err)
	}
	c.Timeout = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ProcessInfo(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, e := range exchanges(f) {
		f.Add(e.response)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, err := readAnswer(bytes.NewReader(data))
		if err != nil {
			_, known := errors.AsType[*Error](err)
			if !known && !errors.Is(err, ErrProtocol) || err.Error() == "" {
				t.Fatal(err)
			}
			return
		}
		a := answer{data: payload}
		for !a.bad && len(a.data) > 0 {
			if s := a.text(); len(s) > 3*len(payload) {
				t.Fatalf("a text of %d bytes from %d", len(s), len(payload))
			}
		}
	})
}
