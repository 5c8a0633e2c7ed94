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

// The pause between two looks at the mappings is so many times as long as the
// last look took, and not shorter than this: a program that makes code all the
// time, or has many mappings, costs the tracer a fifth of a processor at most.
const (
	followPause = 2 * time.Millisecond
	pauseFactor = 4
)

// Follower keeps the space of a process as its mappings are.
type Follower struct {
	Space        *Space
	heard        uint64 // number of the last record that was taken
	Unregistered bool   // the programs do not know yet what is installed
	mu           sync.Mutex
	fresh        []process.Mapping        // files that were mapped since the last look
	register     func(epoch uint64) error // tells the programs
	changes      chan struct{}
	Ready        chan order.Side // what was installed, for the stream; holds the latest
	stopping     chan struct{}
	running      sync.WaitGroup
}

// NewFollower returns the follower of a space. register is called after each change with
// a number that grows.
func NewFollower(s *Space, register func(epoch uint64) error) *Follower {
	return &Follower{
		Space: s, register: register,
		changes: make(chan struct{}, 1), Ready: make(chan order.Side, 1), stopping: make(chan struct{}),
	}
}

// Look reads the mappings and makes them known if they changed.
func (f *Follower) Look() error {
	f.mu.Lock()
	fresh, heard := f.fresh, f.heard
	f.fresh = nil
	f.mu.Unlock()
	changed := false
	all, err := f.Space.Target.Mappings()
	// To take away what was installed would wait for the kernel. A process that is in the
	// middle of an exec has no code either, and goes on.
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
	if changed || f.Unregistered {
		f.Unregistered = true
		// Never the same again, for any process: rules and stacks that the
		// programs remember under another epoch are void.
		if err := f.register(rand.Uint64() | 1<<63); err != nil {
			return err
		}
		f.Unregistered = false
	}
	f.tell(order.Side{Kind: order.SideTables, Snapshot: f.Space.Mappings(), Number: heard, PID: uint32(f.Space.Target.PID)})
	return nil
}

// tell leaves x for the collector in place of an older one.
func (f *Follower) tell(x order.Side) {
	select {
	case <-f.Ready:
	default:
	}
	f.Ready <- x
}

// Mapped takes a record that says that the mappings changed, and asks for a look.
// It never waits long.
func (f *Follower) Mapped(x *order.Side) {
	f.mu.Lock()
	f.heard = x.Number
	if x.Kind == order.SideMap && x.Mapping.Inode != 0 {
		f.fresh = append(f.fresh, x.Mapping)
	}
	f.mu.Unlock()
	f.Changed()
}

// Changed asks for a look; it never waits.
func (f *Follower) Changed() {
	select {
	case f.changes <- struct{}{}:
	default:
	}
}

// Start begins to follow.
func (f *Follower) Start() { f.running.Go(f.run) }

func (f *Follower) run() {
	pause := time.NewTimer(followPause)
	defer pause.Stop()
	var began time.Time
	for {
		select {
		case <-f.stopping:
			return
		case <-f.changes:
		}
		began = time.Now()
		// What was not installed stays unknown, and stacks through it say so.
		if err := f.Look(); err != nil && !errors.Is(err, host.ErrNoProcess) {
			f.Space.Warn("follow the mappings: %v", err)
		}
		pause.Reset(max(followPause, pauseFactor*time.Since(began)))
		select {
		case <-f.stopping:
			return
		case <-pause.C:
		}
	}
}

// Close ends following.
func (f *Follower) Close() error {
	close(f.stopping)
	f.running.Wait()
	return f.Space.Outer.Close()
}
