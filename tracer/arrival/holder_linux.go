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

// Descriptors that the holder inherits.
const (
	programFD = 3 + iota
	arrivalsFD
	wakesFD
	staysFD // held open for the kernel, which would otherwise empty it
)

// holdLimit is how long a process may be held. It is far longer than necessary.
const holdLimit = time.Minute

// lookEvery is how often the holder checks whether the process is still needed.
const lookEvery = 100 * time.Millisecond

// holder is the process that waits and holds.
type holder struct {
	arrivals arrivals
	answers  *gob.Encoder
	tracer   int // process ID of the process that started it

	caught chan *catch // receives the process, once
	found  *catch      // the process
	since  time.Time   // when found was set
	why    string      // why the process was released early; empty if it was not
}

// Run is the holder. It executes the tracer's requests until the tracer is gone, and then lets
// the process go.
func Run() {
	// Only the end of the tracer ends the holder.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP)
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // for those who list or kill processes by name
	// With autogroups, the holder's session has its own share of the processors, and its nice
	// value matters only within that. A process must not have to wait for the holder.
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
				return // the tracer has closed the socket or has ended
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

// begin starts the waiting.
func (h *holder) begin() (link.Link, error) {
	program, err := ebpf.NewProgramFromFD(programFD)
	if err != nil {
		return nil, fmt.Errorf("take over program: %w", err)
	}
	if h.arrivals.Map, err = ebpf.NewMapFromFD(arrivalsFD); err != nil {
		return nil, fmt.Errorf("take over map: %w", err)
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

// serve answers the tracer's questions until there is nothing left to do.
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

// look lets the process go if the tracer is stopped, or does not finish in time.
func (h *holder) look() {
	stat, err := proc.ReadStat(h.tracer)
	switch {
	case err == nil && (stat.State == 'T' || stat.State == 't'):
		h.why = "rtrace-bpf was stopped: the process was released before the probes were attached"
	case time.Since(h.since) > holdLimit:
		h.why = fmt.Sprintf("the probes were not attached after %v: the process was released", holdLimit)
	default:
		return
	}
	if err := h.release(); err != nil {
		h.why += ": " + err.Error()
	}
}

// end lets a process go that is held, or is about to be.
func (h *holder) end() {
	if h.found == nil {
		if nobody, err := h.arrivals.shut(); nobody || err != nil {
			return
		}
		select {
		case h.found = <-h.caught: // a process had arrived, which the waiting threads report
		case <-time.NewTimer(settling).C:
			_ = h.arrivals.resume()
			return
		}
	}
	if h.found.taken != nil {
		_ = h.release() // nobody is left to report an error to
	}
}
