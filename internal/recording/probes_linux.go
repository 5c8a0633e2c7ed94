package recording

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/host"
)

// probes are the tracer of a session, and how its probes are removed.
type probes struct {
	tracer *tracer.Tracer
	line   *status.Line
	hurry  <-chan struct{} // closed when the recording is to end at once
	alone  bool            // there is no other session

	mu       sync.Mutex // of detached
	detached bool       // the tracer is closed
}

// stop ends the recording, unless the tracer is closed.
func (p *probes) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.detached {
		p.tracer.Stop()
	}
}

// detach removes the probes.
func (p *probes) detach() error {
	p.mu.Lock()
	p.detached = true
	p.mu.Unlock()
	if p.tracer.Plan().Mechanisms.Attach == host.MechanismPerf {
		p.line.Say("removing the probes, which takes seconds on this kernel")
	}
	end := p.tracer.Close
	if p.alone {
		end = p.tracer.Leave
	}
	err := p.await(end)
	p.line.Clear()
	return err
}

// removalLimit is how long removing the probes may take. It takes tens of seconds if each
// is a perf event and the machine is busy.
const removalLimit = 2 * time.Minute

// The probes have not been removed yet when rtrace-bpf ends.
var (
	errRemovalHurried = errors.New("ended at once by a second signal, before the probes were removed: rtrace-keeper continues to remove them")
	errRemovalLate    = fmt.Errorf("rtrace-keeper has not removed the probes within %v: it continues, make sure that it runs", removalLimit)
)

// await waits until end has removed the probes, but not after a second signal, nor
// forever: the files do not depend on it.
func (p *probes) await(end func() error) error {
	done := make(chan error, 1)
	go func() { done <- end() }()
	limit := time.NewTimer(removalLimit)
	defer limit.Stop()
	select {
	case err := <-done:
		return err
	case <-p.hurry:
		return errRemovalHurried
	case <-limit.C:
		return errRemovalLate
	}
}
