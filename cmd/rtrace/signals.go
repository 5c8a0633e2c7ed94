package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"rtrace-bpf/internal/cli"
)

// attach connects the program to its files and to the signals that end it. SIGTERM and
// SIGINT cancel the context; after that, either one ends the process at once.
//
// If in is a pipe, the first SIGINT before its end is ignored: a Ctrl-C reaches every
// process of a pipeline, and the process that writes to us still has to send the end of its
// trace.
func attach(in, out, errOut *os.File) (context.Context, cli.Streams) {
	s := cli.FileStreams(in, out, errOut)
	pipe := &pipeReader{r: in}
	pipe.ended.Store(!isPipe(in))
	s.In = pipe

	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go await(signals, pipe, func() {
		signal.Stop(signals)
		cancel()
	})
	return ctx, s
}

// await calls end at the first signal that is not to be ignored.
func await(signals <-chan os.Signal, in *pipeReader, end func()) {
	ignore := true
	for sig := range signals {
		if sig == os.Interrupt && ignore && !in.ended.Load() {
			ignore = false
			continue
		}
		end()
		return
	}
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// pipeReader notices the end of its input.
type pipeReader struct {
	r     io.Reader
	ended atomic.Bool
}

func (p *pipeReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil && !errors.Is(err, syscall.EINTR) {
		p.ended.Store(true)
	}
	return n, err
}
