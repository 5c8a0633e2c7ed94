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

// Name is the name of the holder, argv[0], by which it knows its task. It has nothing in common
// with the tracer's name, so that killing processes by that name does not kill both.
const Name = "rtrace-holder"

// ErrGone reports that the holder has ended, and that the process that it held continues to run.
var ErrGone = errors.New("rtrace-holder has ended: the process that it held runs untraced; start the trace again")

// question is a request to the holder.
type question struct {
	Release bool // let the process go; otherwise run it to the next place for probes
}

// answer is the holder's message when it is waiting, when the process has arrived, and after each
// question.
type answer struct {
	PID   int    // of the process
	There bool   // the process is at a place for probes
	Ended bool   // the process has ended
	Err   string // empty if nothing failed
}

// Arrival waits for a process, and then holds it. Its methods must not be called concurrently.
type Arrival struct {
	objects   *arrivalObjects
	pid       int // of the holder
	socket    *os.File
	fd        int // of socket
	questions *gob.Encoder
	answers   *gob.Decoder
	released  bool
	inOrder   bool // the holder has let the process go as requested
}

// Start starts to wait for the next process that executes a program with the given name, of which
// 15 bytes are compared. The caller must call Close.
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
		Sys:   &syscall.SysProcAttr{Setsid: true}, // signals from a terminal or to the tracer's process group do not reach it
	})
	if err := errors.Join(err, unix.Close(pair[1])); err != nil {
		return errors.Join(fmt.Errorf("start the process that holds: %w", err), unix.Close(pair[0]))
	}
	a.fd, a.socket = pair[0], os.NewFile(uintptr(pair[0]), "holder")
	a.questions, a.answers = gob.NewEncoder(a.socket), gob.NewDecoder(a.socket)
	return nil
}

// answer waits for the holder's next message.
func (a *Arrival) answer() (answer, error) {
	var got answer
	if err := a.answers.Decode(&got); err != nil {
		return got, ErrGone
	}
	switch {
	case got.Ended:
		return got, launch.ErrEnded
	case got.Err != "":
		return got, errors.New(got.Err)
	}
	return got, nil
}

// Await waits for the process and returns its ID. The process is held from then on. The error is
// that of ctx if it ends first.
func (a *Arrival) Await(ctx context.Context) (pid int, err error) {
	defer context.AfterFunc(ctx, func() { _ = unix.Shutdown(a.fd, unix.SHUT_WR) })()
	got, err := a.answer()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return got.PID, err
}

// Waited returns how long the process waited in the kernel, and whether it was stopped by a
// signal because the holder was not ready. Its parent may have noticed that.
func (a *Arrival) Waited() (d time.Duration, stopped bool) {
	all := arrivals{a.objects.Arrivals}
	now, _ := all.taken() // it was found before
	return time.Duration(now.Waited), all.stopped()
}

// Next is like launch.Command.Next: the error is launch.ErrEnded if the process ended on the way.
func (a *Arrival) Next() (there bool, err error) {
	got, err := a.ask(question{})
	return got.There, err
}

// Release lets the process go. It runs even after an error, but then it may have been running
// before.
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

// Close stops waiting, lets the process go if it is held, and ends the holder.
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
