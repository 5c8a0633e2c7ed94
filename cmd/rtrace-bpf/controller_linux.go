package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/remote"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/family"
)

// controller switches a recording on and off and sets marks, as signals and other runs
// of this program ask for.
type controller struct {
	*recording
	requests chan request
	over     chan struct{} // closed when nothing is done any more
	signals  chan os.Signal
	listener *remote.Listener // nil where others cannot be heard
	running  sync.WaitGroup

	now   *window // nil while tracing is off
	marks int     // by signal
}

// request is what the user asks for.
type request struct {
	mark   string // the name of a mark; empty to switch tracing on or off
	answer func(said string, err error)
}

// lookEvery is how often it is looked whether the processes have ended while tracing
// is off.
const lookEvery = 100 * time.Millisecond

// newController begins to hear.
func newController(r *recording) (*controller, error) {
	c := &controller{recording: r, requests: make(chan request), over: make(chan struct{}), signals: make(chan os.Signal, 16)}
	var err error
	if c.listener, err = remote.Listen(r.pids, c.remote); err != nil {
		r.status.print("%v; --toggle and --mark do not reach it, SIGUSR1 and SIGUSR2 do", err)
	}
	signal.Notify(c.signals, unix.SIGUSR1, unix.SIGUSR2)
	c.running.Go(c.hearSignals)
	return c, nil
}

// Close ends the hearing. Who waits for an answer is told that the recording has ended.
func (c *controller) Close() error {
	var err error
	if c.listener != nil {
		err = c.listener.Close()
	}
	c.running.Wait()
	return err
}

func (c *controller) hearSignals() {
	for {
		select {
		case <-c.over:
			return
		case s := <-c.signals:
			var q request
			if s == unix.SIGUSR2 {
				c.marks++
				q.mark = fmt.Sprintf("mark %d", c.marks)
			}
			q.answer = func(said string, err error) {
				switch {
				case err != nil:
					c.status.print("%v", err)
				case q.mark != "" && !c.config.quiet: // of their beginning and end the sessions tell
					c.status.print("%s", said)
				}
			}
			c.ask(q)
		}
	}
}

// remote answers another run of the program.
func (c *controller) remote(from remote.Request) (said string, err error) {
	done := make(chan struct{})
	asked := c.ask(request{mark: from.Mark, answer: func(s string, e error) {
		said, err = s, e
		close(done)
	}})
	if !asked {
		return "", tracer.ErrEnded
	}
	<-done
	return said, err
}

// ask hands a request on. It says whether that will be answered.
func (c *controller) ask(q request) bool {
	select {
	case c.requests <- q:
		return true
	case <-c.over:
		return false
	}
}

// run records in one window after the other, until the recording or the processes end,
// or a window of its own.
func (c *controller) run(ctx, recording context.Context, stop func()) error {
	defer close(c.over)
	open := func() (err error) {
		c.now, err = c.open(ctx, recording, stop)
		return err
	}
	if err := c.begin(recording, open); err != nil {
		if c.now != nil {
			err = errors.Join(err, c.now.close())
		}
		return err
	}
	if d := c.config.duration; d > 0 { // that of the recording: putting the probes in may take longer
		defer time.AfterFunc(d, stop).Stop()
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		var ended <-chan struct{}
		var off <-chan time.Time
		var born <-chan family.Event
		if c.now != nil {
			ended = c.now.ended
		} else {
			off = look.C
			if c.following != nil {
				off, born = nil, c.following.Events()
			}
		}
		select {
		case <-ended:
			return nil
		case <-off:
			if c.lives.none() {
				return nil
			}
		case e := <-born:
			if c.following.pass(e) {
				return nil
			}
		case <-recording.Done():
			if c.now != nil {
				<-c.now.ended
			}
			return nil
		case q := <-c.requests:
			q.answer(c.do(&q, open))
		}
	}
}

// begin opens the first window, unless that comes later, says so, and lets a command
// go that is held until then.
func (c *controller) begin(recording context.Context, open func() error) (err error) {
	if c.config.startPaused {
		c.tellOff()
	} else {
		err = open()
	}
	if err == nil {
		err = c.ready(recording)
	}
	return errors.Join(err, c.letGo(err == nil))
}

// do does what is asked for.
func (c *controller) do(q *request, open func() error) (said string, err error) {
	switch {
	case q.mark != "" && c.now == nil:
		return "", errors.New("tracing is off: there is no trace to set a mark in")
	case q.mark != "":
		return c.now.mark(q.mark)
	case c.now != nil:
		paths := c.now.paths()
		err := c.now.close()
		c.now = nil
		c.tellOff()
		return "wrote " + paths, err
	}
	if err := c.another(); err != nil {
		return "", err
	}
	if c.windows > 0 && c.config.names() {
		_ = tracer.Prioritize() // as at the start
	}
	if err := open(); err != nil {
		return "", err
	}
	return "tracing, writing " + c.now.paths(), nil
}

// another says why there is no place for another trace.
func (c *controller) another() error {
	if c.windows == 0 {
		return nil
	}
	if info, err := os.Stat(c.config.directory()); c.config.toStdout() || err == nil && !info.IsDir() {
		return cli.WithHint(fmt.Errorf("-o %s takes one trace, and that is written", c.config.output), "name a directory, where each has a file of its own")
	}
	return nil
}

func (c *controller) tellOff() {
	if !c.config.quiet {
		c.status.print("tracing is off: kill -USR1 %d or rtrace-bpf --toggle %d switches it on", os.Getpid(), c.pids[0])
	}
}
