// Package keeper puts probes into a process and takes them out, in a process of its own.
//
// The kernel gives up on a breakpoint if the process that installs or removes it is being killed
// ("failed to unregister, leaking uprobe"), and leaves it in the traced process. So the links
// belong to a child, the keeper. It removes all probes when the tracer requests it or has ended
// in any way.
package keeper

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Name is the name of the child, argv[0], by which it knows its task. It has nothing in common
// with the tracer's name, so that killing processes by that name does not kill both.
const Name = "rtrace-keeper"

// Group is a set of probes in one file that run the same program.
type Group struct {
	Program int  // its index among those passed to Give; not for Hold
	File    int  // the file's index
	Return  bool // at the functions' returns
	Multi   bool // as one uprobe_multi link; otherwise as a perf event each
	PID     int  // a process for Multi; otherwise, and for Hold, one of its threads
	Cookies bool // the sites have cookies
	Sites   []Site
}

// Site is a place in a file.
type Site struct {
	Offset uint64 // from the start of the file, bytes
	Cookie uint64
}

// Error reports which probe could not be attached and why. It unwraps to a unix.Errno if the
// kernel returned one.
type Error struct {
	Group int // its index
	Site  int // the index of the first site that failed; 0 for Multi
	Text  string
	Errno unix.Errno // 0: none
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the kernel's error, or nil.
func (e *Error) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// ErrEnded reports that the child has ended, and with it the probes.
var ErrEnded = errors.New("rtrace-keeper, which holds the probes, has ended: start the trace again")

// request is what the child has to do, in this order.
type request struct {
	Detach  bool // close all links, and return when they are closed
	Discard bool // close the previous links after answering
	Attach  []Group
	Hold    []Group
}

// answer has a nil Err if everything was done.
type answer struct {
	Err  *Error
	Used time.Duration // CPU time of the child since its first request
}

// Keeper controls the child. Its methods must not be called concurrently, except Wake and Used.
type Keeper struct {
	used       atomic.Int64 // CPU time of the child for what it has answered, ns
	pid, pidfd int
	socket     *os.File
	requests   *gob.Encoder
	answers    *gob.Decoder
}

// Start starts the child, which is this program again.
func Start() (*Keeper, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make sockets: %w", err)
	}
	none := ^uintptr(0)
	k := newKeeper(os.NewFile(uintptr(pair[0]), "keeper"))
	k.pid, err = syscall.ForkExec("/proc/self/exe", []string{Name}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{uintptr(pair[1]), none, none},
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &k.pidfd}, // a signal to the tracer's group does not reach it
	})
	if err := errors.Join(err, unix.Close(pair[1])); err != nil {
		return nil, errors.Join(fmt.Errorf("start the process that holds the probes: %w", err), k.socket.Close())
	}
	return k, nil
}

func newKeeper(socket *os.File) *Keeper {
	return &Keeper{socket: socket, requests: gob.NewEncoder(socket), answers: gob.NewDecoder(socket)}
}

// Give passes the programs and the files that Groups refer to to the child. Call it once, before
// any other request. The caller may close them afterwards.
func (k *Keeper) Give(programs []*ebpf.Program, files []*os.File) error {
	var fds []int
	for _, p := range programs {
		fds = append(fds, p.FD())
	}
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if err := give(k.socket, gift{uint32(len(programs)), uint32(len(files))}, fds); err != nil {
		return ended(err)
	}
	return nil
}

// PID returns the child's process ID.
func (k *Keeper) PID() int { return k.pid }

// FD returns a descriptor that is readable when the child has ended. It belongs to the
// Keeper.
func (k *Keeper) FD() int { return k.pidfd }

// Attach attaches probes, one group after the other. After an error, an *Error or ErrEnded, the
// groups before the failed one are attached.
func (k *Keeper) Attach(groups []Group) error { return k.ask(&request{Attach: groups}) }

// Replace attaches probes in place of the existing ones, which must have no effect any more: they
// are removed later.
func (k *Keeper) Replace(groups []Group) error { return k.ask(&request{Discard: true, Attach: groups}) }

// Hold attaches additional perf events that do nothing but keep the breakpoints in place. They
// stay until Detach, because removing one could remove a breakpoint.
func (k *Keeper) Hold(groups []Group) error { return k.ask(&request{Hold: groups}) }

// Detach removes all probes.
func (k *Keeper) Detach() error { return k.ask(&request{Detach: true}) }

func (k *Keeper) ask(r *request) error {
	var a answer
	if err := k.requests.Encode(r); err != nil {
		return ended(err)
	}
	if err := k.answers.Decode(&a); err != nil {
		return ended(err)
	}
	k.used.Store(int64(a.Used))
	if a.Err != nil {
		return a.Err
	}
	return nil
}

// Used returns the CPU time that the child has used for the requests that have ended, and between
// them. That for its own start is not part of it.
func (k *Keeper) Used() time.Duration { return time.Duration(k.used.Load()) }

// ended returns ErrEnded with the text of the connection's error. That error may be io.EOF, which
// must not be taken for the end of a trace.
func ended(err error) error { return fmt.Errorf("%w (%s)", ErrEnded, err.Error()) }

// Close removes all probes and ends the child. If the child has ended already, so have its
// probes.
func (k *Keeper) Close() error {
	k.Wake()
	return errors.Join(k.socket.Close(), k.reap())
}

// Wake resumes a child that was stopped by a signal, because it has to remove the probes. It may
// be called while another method waits for the child's answer.
func (k *Keeper) Wake() {
	_ = unix.PidfdSendSignal(k.pidfd, unix.SIGCONT, nil, 0) // no effect if the child has ended
}

// Leave closes the Keeper without waiting. The child does its work even after this process has
// ended.
func (k *Keeper) Leave() error {
	k.Wake()
	go func() { _ = k.reap() }() // needed if this process continues
	return k.socket.Close()
}

// reap waits for the end of the child.
func (k *Keeper) reap() (err error) {
	for {
		_, errWait := unix.Wait4(k.pid, nil, 0, nil)
		if errors.Is(errWait, unix.EINTR) {
			continue
		}
		if errWait != nil {
			err = fmt.Errorf("wait for the process that holds the probes: %w", errWait)
		}
		break
	}
	return errors.Join(err, unix.Close(k.pidfd))
}
