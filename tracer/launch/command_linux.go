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

// ErrEnded reports that the command has ended while it was held, before it could be traced.
var ErrEnded = errors.New("the command ended before its libraries were mapped")

// Options is how a command is started. Its user, directory, environment and limits are those of
// this process.
type Options struct {
	Files [3]*os.File // its standard streams
	Nice  int         // its nice value
}

// Command is a command that was started. Next, Release and Kill must not be called concurrently;
// Signal and Wait may be called at any time.
type Command struct {
	pid      int
	requests chan func() // functions for the thread that holds the command, because no other thread may
	hold     hold

	mu     sync.Mutex // protects status and ended
	status unix.WaitStatus
	ended  bool // it was waited for: its process ID may have been reused
}

// Start starts the program named by argv[0], which it finds in the way of a shell, and holds it
// where its program begins. The caller must call Release or Kill, and then Wait. Errors wrap
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
	if err := c.do(c.hold.begin); err != nil && !errors.Is(err, ErrEnded) { // Next returns that error
		c.Kill()
		c.Wait()
		return nil, fmt.Errorf("hold %s: %w", printable.Name(path), err)
	}
	return c, nil
}

// serve is the thread that starts the command: to the kernel, it is the thread that holds it. The
// thread ends with the last request, because it has the command's priority.
func (c *Command) serve(start func() error, started chan<- error) {
	runtime.LockOSThread() // never unlocked
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

// do runs f in the thread that holds the command.
func (c *Command) do(f func() error) error {
	done := make(chan error)
	c.requests <- func() { done <- f() }
	return <-done
}

// note stores how the command has ended.
func (c *Command) note(status unix.WaitStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.ended = status, true
}

// PID returns the command's process ID.
func (c *Command) PID() int { return c.pid }

// Next runs the command to the next place where probes may be attached, and reports whether there
// is one. The first place is before any code that calls an allocator may have run. If the
// allocator's file is not mapped there yet, call Next again. The error is ErrEnded if the command
// ended on the way.
func (c *Command) Next() (there bool, err error) {
	err = c.do(func() (err error) {
		there, err = c.hold.next()
		return err
	})
	return there, err
}

// Release lets the command run. From then on it runs as if it had never been held.
func (c *Command) Release() error {
	err := c.do(c.hold.release)
	close(c.requests)
	return err
}

// Kill kills a command that is still held.
func (c *Command) Kill() {
	c.Signal(unix.SIGKILL)
	close(c.requests)
}

// Signal sends a signal to the command unless it was waited for.
func (c *Command) Signal(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = unix.Kill(c.pid, sig) // it may have ended, or belong to another user by now
	}
}

// Wait waits for the end of the command, and returns its exit status as shells do: 128+n if
// signal n has ended it.
func (c *Command) Wait() int {
	for {
		c.mu.Lock()
		ended := c.ended
		c.mu.Unlock()
		if ended {
			break
		}
		// Leave the zombie, so that Signal still knows that the process ID is the command's.
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

// take reaps a command that has ended and stores its status.
func (c *Command) take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended {
		_, err := unix.Wait4(c.pid, &c.status, 0, nil)
		c.ended = !errors.Is(err, unix.EINTR)
	}
}
