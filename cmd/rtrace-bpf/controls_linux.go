package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/remote"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/tracer"
)

// controls pass requests to a recording: signals, and those of other runs of this program.
type controls struct {
	report   *reporter
	requests chan recording.Request
	over     chan struct{} // closed when the recording has ended
	signals  chan os.Signal
	listener *remote.Listener // nil if requests of other runs cannot be received
	running  sync.WaitGroup
	marks    int // by signal
}

// newControls returns controls that receive requests until close.
func newControls(r *reporter) *controls {
	c := &controls{report: r, requests: make(chan recording.Request), over: make(chan struct{}), signals: make(chan os.Signal, 16)}
	var err error
	if c.listener, err = remote.Listen(r.pids, c.remote); err != nil {
		c.listener = nil
		r.line.Print("%v; rtrace-bpf toggle and mark do not reach it, SIGUSR1 and SIGUSR2 do", err)
	}
	signal.Notify(c.signals, unix.SIGUSR1, unix.SIGUSR2)
	c.running.Go(c.receiveSignals)
	return c
}

// close ends the requests. A request that waits for an answer gets the error that the
// recording has ended.
func (c *controls) close() {
	close(c.over)
	if c.listener != nil {
		_ = c.listener.Close() // every request has been answered or refused
	}
	c.running.Wait()
}

func (c *controls) receiveSignals() {
	for {
		select {
		case <-c.over:
			return
		case s := <-c.signals:
			mark := ""
			if s == unix.SIGUSR2 {
				c.marks++
				mark = fmt.Sprintf("mark %d", c.marks)
			}
			c.send(mark, func(answer string, err error) {
				switch {
				case err != nil:
					c.report.line.Print("%v", err)
				case mark != "": // the beginning and the end of windows are reported anyway
					c.report.line.Note("%s", answer)
				}
			})
		}
	}
}

// remote answers another run of the program.
func (c *controls) remote(from remote.Request) (text string, err error) {
	done := make(chan struct{})
	sent := c.send(from.Mark, func(answer string, e error) {
		text, err = answer, e
		close(done)
	})
	if !sent {
		return "", tracer.ErrEnded
	}
	<-done
	return text, err
}

// send passes a request to the recording: for a mark, or to switch tracing. It reports
// whether answer will be called.
func (c *controls) send(mark string, answer func(string, error)) bool {
	q := recording.Request{Mark: mark, Answer: func(a recording.Answer, err error) {
		switch {
		case errors.Is(err, recording.ErrOneTrace):
			answer("", cli.WithHint(fmt.Errorf("-o %s takes one trace, and that is written", c.report.config.output.path), "name a directory, where each trace has its own file"))
		case mark != "":
			answer(fmt.Sprintf("mark %q is set in %s", mark, a.Paths), err)
		case a.On:
			answer("tracing, writing "+a.Paths, err)
		default:
			answer("wrote "+a.Paths, err)
		}
	}}
	select {
	case c.requests <- q:
		return true
	case <-c.over:
		return false
	}
}
