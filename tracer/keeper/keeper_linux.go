// Package keeper puts probes into a process and takes them out, in a process of its own.
//
// The kernel gives up on a breakpoint while who installs or removes it is being killed
// ("failed to unregister, leaking uprobe"), and leaves it in the traced process. So the
// links belong to a child, the keeper, which takes all probes out when the tracer tells
// it to, or has ended in whatever way.
package keeper

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Name is the name of the child, argv[0], by which it knows what it is. It has nothing
// of the tracer's, so that who kills that by name does not kill both.
const Name = "rtrace-keeper"

// Group is probes in one file that run the same program.
type Group struct {
	Program int  // its number among those given to Start; not for Hold
	File    int  // the same for files
	Return  bool // at the functions' returns
	Multi   bool // as one uprobe_multi link; otherwise as a perf event each
	PID     int  // of the process for Multi, otherwise of one of its threads, as for Hold
	Cookies bool // the sites have cookies
	Sites   []Site
}

// Site is a place in a file.
type Site struct {
	Offset uint64 // from the start of the file, bytes
	Cookie uint64
}

// Error says which probe could not be put in and why. It unwraps to a unix.Errno if the
// kernel gave one.
type Error struct {
	Group int // its number
	Site  int // the number of the first one in it that failed; 0 for Multi
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

// ErrEnded says that the child has ended, and with it the probes.
var ErrEnded = errors.New("rtrace-keeper, which holds the probes, has ended: start the trace again")

// request is what the tracer wants of the child, in this order.
type request struct {
	Detach  bool // close all links, and return when they are closed
	Discard bool // close those there were, behind the answer
	Attach  []Group
	Hold    []Group
}

// answer is nil in Err if all was done.
type answer struct{ Err *Error }

// Keeper is the child. Its methods are not for several goroutines at a time.
type Keeper struct {
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
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &k.pidfd}, // who kills the tracer's group does not kill it
	})
	if err := errors.Join(err, unix.Close(pair[1])); err != nil {
		return nil, errors.Join(fmt.Errorf("start the process that holds the probes: %w", err), k.socket.Close())
	}
	return k, nil
}

func newKeeper(socket *os.File) *Keeper {
	return &Keeper{socket: socket, requests: gob.NewEncoder(socket), answers: gob.NewDecoder(socket)}
}

// Give gives the child the programs and the files that Groups name, before anything else
// and once. The caller may close them then.
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

// PID returns the child's process id.
func (k *Keeper) PID() int { return k.pid }

// FD returns a descriptor that is readable when the child has ended. It belongs to the
// Keeper.
func (k *Keeper) FD() int { return k.pidfd }

// Attach puts probes in, one group after the other. After an error, an *Error or
// ErrEnded, those before it are in.
func (k *Keeper) Attach(groups []Group) error { return k.ask(&request{Attach: groups}) }

// Replace is Attach in place of the probes that there are, which must be without effect
// by now: they are removed later.
func (k *Keeper) Replace(groups []Group) error { return k.ask(&request{Discard: true, Attach: groups}) }

// Hold puts perf events beside the probes that do nothing but have the breakpoints in.
// They stay until Detach: to remove one could take a breakpoint away.
func (k *Keeper) Hold(groups []Group) error { return k.ask(&request{Hold: groups}) }

// Detach takes all probes out.
func (k *Keeper) Detach() error { return k.ask(&request{Detach: true}) }

func (k *Keeper) ask(r *request) error {
	var a answer
	if err := k.requests.Encode(r); err != nil {
		return ended(err)
	}
	if err := k.answers.Decode(&a); err != nil {
		return ended(err)
	}
	if a.Err != nil {
		return a.Err
	}
	return nil
}

// ended is ErrEnded with what the connection said, as text alone: its io.EOF is not that
// of a trace.
func ended(err error) error { return fmt.Errorf("%w (%s)", ErrEnded, err.Error()) }

// Close takes all probes out and ends the child. Probes of a child that has ended are
// out already.
func (k *Keeper) Close() error {
	k.Wake()
	return errors.Join(k.socket.Close(), k.reap())
}

// Wake lets a child go on that was stopped by a signal: it has to take the probes out. It
// may be called while another method waits for the child's answer.
func (k *Keeper) Wake() {
	_ = unix.PidfdSendSignal(k.pidfd, unix.SIGCONT, nil, 0) // one that has ended needs none
}

// Leave is Close without waiting for it. The child does its work also when this process
// has ended.
func (k *Keeper) Leave() error {
	k.Wake()
	go func() { _ = k.reap() }() // for one that goes on
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
