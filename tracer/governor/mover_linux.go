package governor

import "sync"

// mover moves the probes in a goroutine, one move at a time, because that takes seconds
// on kernels without uprobe_multi.
type mover struct {
	state   state
	moved   chan error
	running sync.WaitGroup
}

// state is where the probes are, or what is being done with them.
type state uint8

const (
	recording state = iota
	holding         // recording with the probes that are in place
	detaching
	waiting
	attaching
	ended // the process has ended
)

// start starts a move and enters its state.
func (m *mover) start(to state, move func() error) {
	m.state = to
	m.running.Go(func() { m.moved <- move() })
}

// done reports whether a move has ended, and returns its error.
func (m *mover) done() (ok bool, err error) {
	select {
	case err = <-m.moved:
		return true, err
	default:
		return false, nil
	}
}
