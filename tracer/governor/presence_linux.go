package governor

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/probe"
)

// lookInterval is how often the governor looks for missing probes. A look reads the
// process's memory once for each probe.
const lookInterval = 50 * time.Millisecond

// presence is what is known of whether the probes are in place.
type presence struct {
	ended  uint64             // when the thread that the probes are attached to ended; 0 if it has not
	places *probe.Breakpoints // nil while the probes cannot be removed
	seen   uint64             // when the probes were last seen in place
}

// threadEnded notes that the thread of the probes ended.
func (p *presence) threadEnded(time uint64) {
	if p.ended == 0 {
		p.ended = time
	}
}

// watch starts to watch the probes in the memory of a thread. They were in place at
// since. If that thread has ended, the probes count as without thread again.
func (p *presence) watch(find func(tid int) (*probe.Breakpoints, error), tid int, since uint64) (err error) {
	if p.places != nil {
		return nil
	}
	p.seen = since
	p.places, err = find(tid)
	if isGone(err) {
		p.ended = since
		return nil
	}
	return err
}

// isGone reports whether err means that the process or thread has ended.
func isGone(err error) bool {
	return errors.Is(err, proc.ErrNoProcess) || errors.Is(err, proc.ErrGone) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// due reports whether it is time for a look.
func (p *presence) due(now uint64) bool {
	return p.places != nil && now-p.seen >= uint64(lookInterval)
}

// missing reports whether probes are watched, and one is not in place.
func (p *presence) missing() bool { return p.places != nil && p.places.Missing() }

// Close ends the watch.
func (p *presence) Close() {
	if p.places != nil {
		p.places.Close()
	}
}
