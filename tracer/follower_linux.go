package tracer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// followPause is the shortest time between two looks at the mappings, so that
// a program that makes code all the time costs the tracer little.
const followPause = 2 * time.Millisecond

// follower keeps the space of a process as its mappings are.
type follower struct {
	space    *space
	register func(code []placed, epoch uint64) error // tells the programs
	changes  chan struct{}
	ready    chan side // what was installed, for the stream; holds the latest
	stopping chan struct{}
	running  sync.WaitGroup
}

func newFollower(s *space, register func([]placed, uint64) error) *follower {
	return &follower{
		space: s, register: register,
		changes: make(chan struct{}, 1), ready: make(chan side, 1), stopping: make(chan struct{}),
	}
}

// look reads the mappings and makes them known if they changed.
func (f *follower) look() error {
	seen := clock()
	all, err := f.space.target.mappings()
	if err != nil {
		return err
	}
	changed, err := f.space.update(all)
	if err != nil {
		return fmt.Errorf("update unwind tables: %w", err)
	}
	if changed {
		// Never the same again, for any process: rules and stacks that the
		// programs remember under another epoch are void.
		if err := f.register(f.space.code, rand.Uint64()|1<<63); err != nil {
			return err
		}
	}
	f.tell(side{kind: sideTables, snapshot: f.space.mappings(), seen: seen, pid: uint32(f.space.target.pid)})
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
	for {
		select {
		case <-f.stopping:
			return
		case <-f.changes:
		}
		// What was not installed stays unknown, and stacks through it say so.
		if err := f.look(); err != nil && !errors.Is(err, ErrNoProcess) {
			f.space.warn("follow the mappings: %v", err)
		}
		pause.Reset(followPause)
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
