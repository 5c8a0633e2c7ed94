package launch

import "golang.org/x/sys/unix"

// HandOver lets the command go as Release does, but stopped, so that another thread can
// hold it: a SIGSTOP is on its way to it, and nothing of it runs before a SIGCONT. It
// returns the signals that were to stop it meanwhile, which it is to have then.
func (c *Command) HandOver() (stops []unix.Signal, err error) {
	err = c.do(func() error {
		stops, c.hold.stops = c.hold.stops, []unix.Signal{unix.SIGSTOP}
		return c.hold.release()
	})
	close(c.requests)
	return stops, err
}

// Take takes the exit status of the command, which has ended, so that nobody else
// need wait for it. Wait returns it.
func (c *Command) Take() { c.take() }
