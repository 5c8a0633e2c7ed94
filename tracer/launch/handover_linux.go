package launch

import "golang.org/x/sys/unix"

// HandOver lets the command go like Release, but stopped, so that another thread can seize it: a
// SIGSTOP is pending, and the command does not run before a SIGCONT. HandOver returns the stop
// signals that arrived in the meantime, which must be sent to the command afterwards.
func (c *Command) HandOver() (stops []unix.Signal, err error) {
	err = c.do(func() error {
		stops, c.hold.stops = c.hold.stops, []unix.Signal{unix.SIGSTOP}
		return c.hold.release()
	})
	close(c.requests)
	return stops, err
}

// Take reaps the command, which has ended, so that nobody else needs to wait for it. Wait returns
// the status.
func (c *Command) Take() { c.take() }
