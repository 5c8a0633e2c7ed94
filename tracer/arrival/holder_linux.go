package arrival

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/launch"
)

// Descriptors that the holder is given.
const (
	programFD = 3 + iota
	arrivalsFD
	wakesFD
	staysFD // held open for the kernel, which would empty it
)

// holdLimit is how long a process may be held. It is far more than it takes.
const holdLimit = time.Minute

// lookEvery is how often it is looked whether the process is held for nothing.
const lookEvery = 100 * time.Millisecond

// holder is the process that waits and holds.
type holder struct {
	arrivals arrivals
	answers  *gob.Encoder
	tracer   int // process id of who has started it

	caught chan *catch // the process, once
	found  *catch      // it
	since  time.Time   // when it was found
	why    string      // the process was let go before it was to be; empty if not
}

// Run is the holder: it does what the tracer asks until that is gone, and lets the
// process go that it holds.
func Run() {
	// The end of the tracer is its only end.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP)
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // for who lists or kills processes by it
	// Its session has a share of the processors of its own, where there are such, and its
	// nice value counts within that alone. A process must not wait for it.
	_ = os.WriteFile("/proc/self/autogroup", []byte("-20"), 0)
	socket := os.NewFile(0, "tracer")
	h := &holder{answers: gob.NewEncoder(socket), tracer: unix.Getppid(), caught: make(chan *catch, 1)}
	l, err := h.begin()
	if err != nil {
		_ = h.answers.Encode(answer{Err: err.Error()})
		return
	}
	questions := make(chan question)
	go func() {
		defer close(questions)
		from := gob.NewDecoder(socket)
		for {
			var q question
			if from.Decode(&q) != nil {
				return // the tracer has closed the socket or ended
			}
			questions <- q
		}
	}()
	if h.answers.Encode(answer{}) == nil {
		h.serve(questions)
	}
	_ = l.Close()
	h.end()
}

// begin has the waiting begin.
func (h *holder) begin() (link.Link, error) {
	program, err := ebpf.NewProgramFromFD(programFD)
	if err != nil {
		return nil, fmt.Errorf("take over a program: %w", err)
	}
	if h.arrivals.Map, err = ebpf.NewMapFromFD(arrivalsFD); err != nil {
		return nil, fmt.Errorf("take over a map: %w", err)
	}
	if err := h.watch(); err != nil {
		return nil, err
	}
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sched_process_exec", Program: program})
	if err != nil {
		return nil, fmt.Errorf("watch executions: %w", err)
	}
	return l, nil
}

// serve does what the tracer asks, until there is nothing left to do.
func (h *holder) serve(questions <-chan question) {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		var look <-chan time.Time
		if h.found != nil && h.found.taken != nil {
			look = ticks.C
		}
		select {
		case c := <-h.caught:
			h.found, h.since = c, time.Now()
			if h.answers.Encode(c.answer()) != nil {
				return
			}
		case <-look:
			h.look()
		case q, ok := <-questions:
			if !ok || h.answers.Encode(h.do(q)) != nil {
				return
			}
		}
	}
}

func (h *holder) do(q question) answer {
	c := h.found
	switch {
	case h.why != "":
		return answer{Err: h.why}
	case c == nil || c.taken == nil:
		return answer{Err: "there is no process to hold"}
	case q.Release:
		return failed(h.release())
	}
	var there bool
	var err error
	c.do(func() { there, err = c.taken.Next() })
	a := failed(err)
	a.There = there
	return a
}

func failed(err error) answer {
	if err != nil {
		return answer{Err: err.Error(), Ended: errors.Is(err, launch.ErrEnded)}
	}
	return answer{}
}

// release lets the process go.
func (h *holder) release() (err error) {
	c := h.found
	c.do(func() { err = c.taken.Release() })
	c.taken = nil
	return err
}

// look lets the process go if the tracer is stopped, or is not done with it.
func (h *holder) look() {
	stat, err := proc.ReadStat(h.tracer)
	switch {
	case err == nil && (stat.State == 'T' || stat.State == 't'):
		h.why = "rtrace-bpf was stopped: the process was let go before the probes were in"
	case time.Since(h.since) > holdLimit:
		h.why = fmt.Sprintf("the probes were not in after %v: the process was let go", holdLimit)
	default:
		return
	}
	if err := h.release(); err != nil {
		h.why += ": " + err.Error()
	}
}

// end lets a process go that is held, or is on its way to be.
func (h *holder) end() {
	if h.found == nil {
		if nobody, err := h.arrivals.shut(); nobody || err != nil {
			return
		}
		select {
		case h.found = <-h.caught: // somebody had come, which those who wait are told
		case <-time.NewTimer(settling).C:
			_ = h.arrivals.resume()
			return
		}
	}
	if h.found.taken != nil {
		_ = h.release() // there is nobody left to tell
	}
}
