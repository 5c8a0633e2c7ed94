package arrival

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/launch"
)

// Name is the name of the holder, argv[0], by which it knows what it is. It has nothing
// of the tracer's, so that who kills that by name does not kill both.
const Name = "rtrace-holder"

// ErrGone says that the holder has ended, and that the process that it held runs on.
var ErrGone = errors.New("rtrace-holder has ended: the process that it was to hold runs untraced")

// question is what the tracer wants of the holder.
type question struct {
	Release bool // let the process go; else: go on to the next place for probes
}

// answer is what the holder says when it waits, when the process is there, and to each
// question.
type answer struct {
	PID   int    // of the process
	There bool   // there is a place for probes
	Ended bool   // the process has ended
	Err   string // empty if nothing went wrong
}

// Arrival is the waiting for a process, and then the process. Its methods are for one
// goroutine at a time.
type Arrival struct {
	objects   *arrivalObjects
	pid       int // of the holder
	socket    *os.File
	fd        int // of socket
	questions *gob.Encoder
	answers   *gob.Decoder
	released  bool
	inOrder   bool // it was the holder who has let the process go
}

// Start begins to wait for the next process that executes a program under a name, of
// which 15 bytes count. The caller must Close it.
func Start(name string) (*Arrival, error) {
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count processors: %w", err)
	}
	objects, err := load(name, processors)
	if err != nil {
		return nil, err
	}
	a := &Arrival{objects: objects}
	if err := a.startHolder(); err != nil {
		return nil, errors.Join(err, objects.Close())
	}
	if _, err := a.answer(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Arrival) startHolder() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make sockets: %w", err)
	}
	none := ^uintptr(0)
	o := a.objects
	a.pid, err = syscall.ForkExec("/proc/self/exe", []string{Name}, &syscall.ProcAttr{
		Dir:   "/",
		Files: []uintptr{uintptr(pair[1]), none, none, uintptr(o.Executed.FD()), uintptr(o.Arrivals.FD()), uintptr(o.Wakes.FD()), uintptr(o.Stays.FD())},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // no terminal's signals reach it, nor who kills the tracer's group
	})
	if err := errors.Join(err, unix.Close(pair[1])); err != nil {
		return errors.Join(fmt.Errorf("start the process that holds: %w", err), unix.Close(pair[0]))
	}
	a.fd, a.socket = pair[0], os.NewFile(uintptr(pair[0]), "holder")
	a.questions, a.answers = gob.NewEncoder(a.socket), gob.NewDecoder(a.socket)
	return nil
}

// answer waits for what the holder says next.
func (a *Arrival) answer() (answer, error) {
	var said answer
	if err := a.answers.Decode(&said); err != nil {
		return said, ErrGone
	}
	switch {
	case said.Ended:
		return said, launch.ErrEnded
	case said.Err != "":
		return said, errors.New(said.Err)
	}
	return said, nil
}

// Await waits for the process and returns its id. It is held from then on. The error is
// that of ctx if it ends before.
func (a *Arrival) Await(ctx context.Context) (pid int, err error) {
	defer context.AfterFunc(ctx, func() { _ = unix.Shutdown(a.fd, unix.SHUT_WR) })()
	said, err := a.answer()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return said.PID, err
}

// Waited says how long the process that has come waited in the kernel, and whether it
// was stopped by a signal then, since the holder was not there: its parent may have
// seen that.
func (a *Arrival) Waited() (d time.Duration, stopped bool) {
	all := arrivals{a.objects.Arrivals}
	now, _ := all.taken() // it was found before
	return time.Duration(now.Waited), all.stopped()
}

// Next is that of launch.Command: the error is launch.ErrEnded if the process ended on
// its way.
func (a *Arrival) Next() (there bool, err error) {
	said, err := a.ask(question{})
	return said.There, err
}

// Release lets the process go. After an error it runs, too, but had begun before.
func (a *Arrival) Release() error {
	if a.released {
		return nil
	}
	a.released = true
	_, err := a.ask(question{Release: true})
	a.inOrder = err == nil
	return err
}

func (a *Arrival) ask(q question) (answer, error) {
	if err := a.questions.Encode(q); err != nil {
		return answer{}, ErrGone
	}
	return a.answer()
}

// Close ends the waiting, lets the process go if it is held, and ends the holder.
func (a *Arrival) Close() error {
	err := a.socket.Close()
	for {
		_, errWait := unix.Wait4(a.pid, nil, 0, nil)
		if errors.Is(errWait, unix.EINTR) {
			continue
		}
		if errWait != nil {
			err = errors.Join(err, fmt.Errorf("wait for the process that holds: %w", errWait))
		}
		break
	}
	if !a.inOrder {
		err = errors.Join(err, a.rescue())
	}
	return errors.Join(err, a.objects.Close())
}

// rescue continues a process that was stopped while the holder was being killed.
func (a *Arrival) rescue() error {
	all := arrivals{a.objects.Arrivals}
	if nobody, err := all.shut(); nobody || err != nil {
		return err
	}
	return all.resume()
}
