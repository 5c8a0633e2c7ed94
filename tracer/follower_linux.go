package tracer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// The pause between two looks at the mappings is so many times as long as the
// last look took, and not shorter than this: a program that makes code all the
// time, or has many mappings, costs the tracer a fifth of a processor at most.
const (
	followPause = 2 * time.Millisecond
	pauseFactor = 4
)

// follower keeps the space of a process as its mappings are.
type follower struct {
	space    *space
	heard    uint64 // number of the last record that was taken
	untold   bool   // the programs do not know yet what is installed
	mu       sync.Mutex
	fresh    []mapping                // files that were mapped since the last look
	register func(epoch uint64) error // tells the programs
	changes  chan struct{}
	ready    chan side // what was installed, for the stream; holds the latest
	stopping chan struct{}
	running  sync.WaitGroup
}

// newFollower returns the follower of a space. register is called after each change with
// a number that grows.
func newFollower(s *space, register func(epoch uint64) error) *follower {
	return &follower{
		space: s, register: register,
		changes: make(chan struct{}, 1), ready: make(chan side, 1), stopping: make(chan struct{}),
	}
}

// look reads the mappings and makes them known if they changed.
func (f *follower) look() error {
	f.mu.Lock()
	fresh, heard := f.fresh, f.heard
	f.fresh = nil
	f.mu.Unlock()
	changed := false
	all, err := f.space.target.mappings()
	// To take away what was installed would wait for the kernel. A process that is in the
	// middle of an exec has no code either, and goes on.
	ended := err == nil && len(all) == 0 && len(f.space.code) > 0 && f.space.target.ended()
	if err == nil && !ended {
		if changed, err = f.space.update(all, fresh); err != nil {
			err = fmt.Errorf("update unwind tables: %w", err)
		}
	}
	if err != nil || ended {
		f.mu.Lock()
		f.fresh = append(f.fresh, fresh...)
		f.mu.Unlock()
		return err
	}
	if changed || f.untold {
		f.untold = true
		// Never the same again, for any process: rules and stacks that the
		// programs remember under another epoch are void.
		if err := f.register(rand.Uint64() | 1<<63); err != nil {
			return err
		}
		f.untold = false
	}
	f.tell(side{kind: sideTables, snapshot: f.space.mappings(), number: heard, pid: uint32(f.space.target.pid)})
	return nil
}

// tell leaves x for the collector in place of an older one.
func (f *follower) tell(x side) {
	select {
	case <-f.ready:
	default:
	}
	f.ready <- x
}

// told takes a record that says that the mappings changed, and asks for a look.
// It never waits long.
func (f *follower) told(x *side) {
	f.mu.Lock()
	f.heard = x.number
	if x.kind == sideMap && x.mapping.inode != 0 {
		f.fresh = append(f.fresh, x.mapping)
	}
	f.mu.Unlock()
	f.changed()
}

// changed asks for a look; it never waits.
func (f *follower) changed() {
	select {
	case f.changes <- struct{}{}:
	default:
	}
}

// start begins to follow.
func (f *follower) start() { f.running.Go(f.run) }

func (f *follower) run() {
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
		if err := f.look(); err != nil && !errors.Is(err, ErrNoProcess) {
			f.space.warn("follow the mappings: %v", err)
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
func (f *follower) Close() error {
	close(f.stopping)
	f.running.Wait()
	return f.space.outer.Close()
}
