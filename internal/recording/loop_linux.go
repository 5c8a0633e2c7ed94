package recording

import (
	"context"
	"errors"
	"time"

	"rtrace-bpf/tracer/family"
	"rtrace-bpf/tracer/host"
)

// Request asks a recording to switch tracing off or on, or to set a mark.
type Request struct {
	Mark string // the name of the mark; empty to switch tracing
	// Answer is called once.
	Answer func(Answer, error)
}

// Answer is the result of a request.
type Answer struct {
	On    bool   // tracing is on now
	Paths string // of the traces that were begun, marked or completed
}

// Errors of requests.
var (
	// ErrOff is the error of a mark while tracing is off.
	ErrOff = errors.New("tracing is off: there is no trace to set a mark in")
	// ErrOneTrace is the error of switching tracing on if the output is a file.
	ErrOneTrace = errors.New("the output takes one trace, and that is written")
)

// loop records in one window after the other.
type loop struct {
	*Recording
	ctx   context.Context // of the program
	until context.Context // of the recording
	stop  func()          // ends until
	now   *window         // nil while tracing is off
}

// checkInterval is how often the processes are checked for having ended while tracing is
// off.
const checkInterval = 100 * time.Millisecond

// run records until the recording or the processes end, or a window ends by itself.
func (l *loop) run(requests <-chan Request) error {
	if err := l.begin(); err != nil {
		if l.now != nil {
			err = errors.Join(err, l.now.end())
		}
		return err
	}
	if d := l.options.Duration; d > 0 { // of the recording: attaching the probes may take longer
		defer time.AfterFunc(d, l.stop).Stop()
	}
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	for {
		var ended <-chan struct{}
		var off <-chan time.Time
		var born <-chan family.Event
		switch {
		case l.now != nil:
			ended = l.now.ended
		case l.following != nil:
			born = l.following.Events()
		default:
			off = check.C
		}
		select {
		case <-ended:
			return nil
		case <-off:
			if l.exits.all() {
				return nil
			}
		case e := <-born:
			if l.following.pass(e) {
				return nil
			}
		case <-l.until.Done():
			if l.now != nil {
				<-l.now.ended
			}
			return nil
		case q := <-requests:
			q.Answer(l.do(&q))
		}
	}
}

// begin opens the first window, unless that comes later, reports that, and lets a held
// process run.
func (l *loop) begin() (err error) {
	if l.options.Paused {
		l.options.Report.Off()
	} else {
		err = l.open()
	}
	if err == nil {
		err = l.options.Report.Ready(l.until)
	}
	return errors.Join(err, l.letGo(err == nil))
}

// open opens a window.
func (l *loop) open() (err error) {
	l.now, err = l.Recording.open(l.ctx, l.until, l.stop)
	return err
}

// do does what is asked for.
func (l *loop) do(q *Request) (Answer, error) {
	switch {
	case q.Mark != "" && l.now == nil:
		return Answer{}, ErrOff
	case q.Mark != "":
		if err := l.now.mark(q.Mark); err != nil {
			return Answer{}, err
		}
		return Answer{On: true, Paths: l.now.paths()}, nil
	case l.now != nil:
		answer := Answer{Paths: l.now.paths()}
		err := l.now.end()
		l.now = nil
		l.options.Report.Off()
		return answer, err
	}
	if l.windows > 0 && l.options.Output.Taken() {
		return Answer{}, ErrOneTrace
	}
	if l.windows > 0 && l.options.Names {
		_ = host.Prioritize() // as at the start
	}
	if err := l.open(); err != nil {
		return Answer{}, err
	}
	return Answer{On: true, Paths: l.now.paths()}, nil
}
