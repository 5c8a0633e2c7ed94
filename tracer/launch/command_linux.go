package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/printable"
)

// ErrEnded says that the command has ended while it was held: before it could have
// been traced.
var ErrEnded = errors.New("the command has ended before its libraries were there")

// Options say how a command is started. Its user, directory, environment and limits
// are those of this process.
type Options struct {
	Files [3]*os.File // its standard streams
	Nice  int         // its nice value
}

// Command is a command that was started. Next, Release and Kill are for one goroutine
// at a time; Signal and Wait may be called besides.
type Command struct {
	pid      int
	requests chan func() // for the thread that holds it, the only one that may
	hold     hold

	mu     sync.Mutex // of status and ended
	status unix.WaitStatus
	ended  bool // it was waited for: its process id may be another's
}

// Start starts the program that argv[0] names, looked for as shells do, and holds it
// where its program begins. The caller must Release or Kill it, and Wait. Errors wrap
// ErrNotFound or ErrNotExecutable if they are about the program.
func Start(argv []string, o Options) (*Command, error) {
	path, err := find(argv[0], os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	c := &Command{requests: make(chan func())}
	started := make(chan error)
	go c.serve(func() error { return c.start(path, argv, o) }, started)
	if err := <-started; err != nil {
		return nil, err
	}
	if err := c.do(c.hold.begin); err != nil && !errors.Is(err, ErrEnded) { // Next tells of that
		c.Kill()
		c.Wait()
		return nil, fmt.Errorf("hold %s: %w", printable.Name(path), err)
	}
	return c, nil
}

// serve is the thread that starts the command: for the kernel it is the one that holds
// it. It ends with the last request, since it has the command's priority.
func (c *Command) serve(start func() error, started chan<- error) {
	runtime.LockOSThread() // for good
	err := start()
	started <- err
	if err != nil {
		return
	}
	for f := range c.requests {
		f()
	}
}

func (c *Command) start(path string, argv []string, o Options) error {
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, o.Nice); err != nil {
		return fmt.Errorf("set the priority of the command: %w", err)
	}
	files := make([]uintptr, len(o.Files))
	for i, f := range o.Files {
		files[i] = f.Fd()
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return startError(path, err)
	}
	c.pid, c.hold = pid, hold{pid: pid, note: c.note}
	return nil
}

// do has the thread that holds the command do something.
func (c *Command) do(f func() error) error {
	done := make(chan error)
	c.requests <- func() { done <- f() }
	return <-done
}

// note keeps how the command has ended.
func (c *Command) note(status unix.WaitStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.ended = status, true
}

// PID returns the command's process id.
func (c *Command) PID() int { return c.pid }

// Next lets the command run to the next place where probes may be put in, and says
// whether there is one. The first is before any code that calls an allocator may have
// run, unless its file was not there yet: then the next one is to be tried. The error
// is ErrEnded if the command ended on its way.
func (c *Command) Next() (there bool, err error) {
	err = c.do(func() (err error) {
		there, err = c.hold.next()
		return err
	})
	return there, err
}

// Release lets the command go. It runs from then on as if nobody had held it.
func (c *Command) Release() error {
	err := c.do(c.hold.release)
	close(c.requests)
	return err
}

// Kill ends a command that is still held.
func (c *Command) Kill() {
	c.Signal(unix.SIGKILL)
	close(c.requests)
}

// Signal sends a signal to the command unless it was waited for.
func (c *Command) Signal(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = unix.Kill(c.pid, sig) // it may have ended, or be another user's by now
	}
}

// Wait waits for the end of the command, and returns its exit status as shells do:
// 128+n if signal n has ended it.
func (c *Command) Wait() int {
	for {
		c.mu.Lock()
		ended := c.ended
		c.mu.Unlock()
		if ended {
			break
		}
		// Without taking it, so that Signal can still tell whose the process id is.
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		c.take()
	}
	if c.status.Signaled() {
		return 128 + int(c.status.Signal())
	}
	return c.status.ExitStatus()
}

// take takes the status of a command that has ended.
func (c *Command) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended {
		_, err := unix.Wait4(c.pid, &c.status, 0, nil)
		c.ended = !errors.Is(err, unix.EINTR)
	}
}
