package tables

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// The follower waits between two looks at the mappings: waitFactor times as long as the
// last look took, and at least followWait. A process that creates code all the time, or
// has many mappings, thus costs the tracer at most a fifth of a processor.
const (
	followWait = 2 * time.Millisecond
	waitFactor = 4
)

// Follower keeps the Space of a process up to date with its mappings.
type Follower struct {
	Space        *Space
	heard        uint64 // number of the last record that Mapped received
	unregistered bool   // the programs do not use the installed mappings yet
	mu           sync.Mutex
	fresh        []process.Mapping        // files mapped since the last look
	register     func(epoch uint64) error // has the programs use what is installed
	changes      chan struct{}
	Ready        chan order.Side // the latest installed mappings, for the stream
	stopping     chan struct{}
	running      sync.WaitGroup
}

// NewFollower returns the follower of s. It calls register with a new epoch after each
// change.
func NewFollower(s *Space, register func(epoch uint64) error) *Follower {
	return &Follower{
		Space: s, register: register,
		changes: make(chan struct{}, 1), Ready: make(chan order.Side, 1), stopping: make(chan struct{}),
	}
}

// Look reads the mappings, installs them if they changed, and reports them on Ready.
func (f *Follower) Look() error {
	f.mu.Lock()
	fresh, heard := f.fresh, f.heard
	f.fresh = nil
	f.mu.Unlock()
	changed := false
	all, err := f.Space.Target.Mappings()
	// Keep what is installed for a process that has ended: removing it would wait for the
	// kernel. A process in the middle of an exec has no code either, but continues.
	ended := err == nil && len(all) == 0 && len(f.Space.Code) > 0 && f.Space.Target.Ended()
	if err == nil && !ended {
		if changed, err = f.Space.update(all, fresh); err != nil {
			err = fmt.Errorf("update unwind tables: %w", err)
		}
	}
	if err != nil || ended {
		f.mu.Lock()
		f.fresh = append(f.fresh, fresh...)
		f.mu.Unlock()
		return err
	}
	if changed || f.unregistered {
		f.unregistered = true
		// A random epoch, which no process had before: rules and stacks that the programs
		// remember under another epoch become void.
		if err := f.register(rand.Uint64() | 1<<63); err != nil {
			return err
		}
		f.unregistered = false
	}
	f.offer(order.Side{Kind: order.SideTables, Snapshot: f.Space.Mappings(), Number: heard, PID: uint32(f.Space.Target.PID)})
	return nil
}

// offer leaves x for the collector, in place of an older one.
func (f *Follower) offer(x order.Side) {
	select {
	case <-f.Ready:
	default:
	}
	f.Ready <- x
}

// Mapped records that x changed the mappings, and requests a look. It does not wait for
// the look.
func (f *Follower) Mapped(x *order.Side) {
	f.mu.Lock()
	f.heard = x.Number
	if x.Kind == order.SideMap && x.Mapping.Inode != 0 {
		f.fresh = append(f.fresh, x.Mapping)
	}
	f.mu.Unlock()
	f.Changed()
}

// Changed requests a look; it never waits.
func (f *Follower) Changed() {
	select {
	case f.changes <- struct{}{}:
	default:
	}
}

// Start starts the goroutine that follows the mappings.
func (f *Follower) Start() { f.running.Go(f.run) }

func (f *Follower) run() {
	pause := time.NewTimer(followWait)
	defer pause.Stop()
	var began time.Time
	for {
		select {
		case <-f.stopping:
			return
		case <-f.changes:
		}
		began = time.Now()
		// After an error the mappings stay unknown; stacks through them end with a reason
		// that shows it.
		if err := f.Look(); err != nil && !errors.Is(err, host.ErrNoProcess) {
			f.Space.Warn("follow the mappings: %v", err)
		}
		pause.Reset(max(followWait, waitFactor*time.Since(began)))
		select {
		case <-f.stopping:
			return
		case <-pause.C:
		}
	}
}

// Close stops following and closes the outer map of mappings.
func (f *Follower) Close() error {
	close(f.stopping)
	f.running.Wait()
	return f.Space.Outer.Close()
}
