package keeper

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// holder is the state of the child.
type holder struct {
	programs []*ebpf.Program
	files    []int         // descriptors
	unready  error         // why there are no files
	nothing  *ebpf.Program // does nothing; nil until it is needed
	links    []link.Link
	holds    []link.Link    // links that keep breakpoints in place
	closing  sync.WaitGroup // closing of links that have no effect
}

// Run is the child. It executes the tracer's requests until the tracer is gone, and then removes
// all probes.
func Run() {
	// Only the end of the tracer ends the child.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // for those who list or kill processes by name
	socket := os.NewFile(0, "tracer")
	requests, answers := gob.NewDecoder(socket), gob.NewEncoder(socket)
	h := &holder{}
	programs, files, err := take(socket)
	if errors.Is(err, io.EOF) {
		return // the tracer has ended
	}
	h.takeOver(programs, files, err)
	var began time.Duration
	for {
		var r request
		if err := requests.Decode(&r); err != nil {
			break // the tracer has closed the socket or has ended
		}
		if began == 0 {
			began = cpuTime()
		}
		a := h.do(&r)
		a.Used = cpuTime() - began
		if err := answers.Encode(a); err != nil {
			break
		}
	}
	_ = h.detach() // nobody is left to report an error to
	h.closing.Wait()
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) // cannot fail with these arguments
	return time.Duration(ts.Nano())
}

// takeOver makes the received descriptors its own.
func (h *holder) takeOver(programs, files []int, err error) {
	h.files, h.unready = files, err
	for _, fd := range programs {
		p, err := ebpf.NewProgramFromFD(fd)
		if err != nil {
			h.unready = fmt.Errorf("take over program: %w", err)
		}
		h.programs = append(h.programs, p)
	}
}

func (h *holder) do(r *request) (a answer) {
	if h.unready != nil {
		a.Err = failed(h.unready)
		return a
	}
	if r.Detach {
		if err := h.detach(); err != nil {
			a.Err = failed(err)
			return a
		}
	}
	if r.Discard {
		defer h.discard(h.links)
		h.links = nil
	}
	for i := range r.Attach {
		if site, err := h.attach(&r.Attach[i]); err != nil {
			a.Err = failed(err)
			a.Err.Group, a.Err.Site = i, site
			return a
		}
	}
	if len(r.Hold) > 0 {
		a.Err = h.hold(r.Hold)
	}
	return a
}

// discard closes links that have no effect any more, without waiting.
func (h *holder) discard(links []link.Link) {
	for _, l := range links {
		h.closing.Go(func() { _ = l.Close() })
	}
}

func failed(err error) *Error {
	e := &Error{Text: err.Error()}
	_ = errors.As(err, &e.Errno)
	return e
}

// attach returns the index of the group's site that failed.
func (h *holder) attach(g *Group) (site int, err error) {
	program := h.programs[g.Program]
	exe, err := link.OpenExecutable(h.file(g))
	if err != nil {
		return 0, err
	}
	if g.Multi {
		return 0, h.multi(g, exe, program)
	}
	attach := exe.Uprobe
	if g.Return {
		attach = exe.Uretprobe
	}
	for i := range g.Sites {
		o := &link.UprobeOptions{Address: g.Sites[i].Offset, PID: g.PID, Cookie: g.Sites[i].Cookie}
		l, err := attach("", program, o)
		if err != nil {
			return i, err
		}
		h.links = append(h.links, l)
	}
	return 0, nil
}

// multi attaches all probes of a group with one link.
func (h *holder) multi(g *Group, exe *link.Executable, program *ebpf.Program) error {
	o := &link.UprobeMultiOptions{PID: uint32(g.PID)}
	for _, s := range g.Sites {
		o.Addresses = append(o.Addresses, s.Offset)
		if g.Cookies {
			o.Cookies = append(o.Cookies, s.Cookie)
		}
	}
	attach := exe.UprobeMulti
	if g.Return {
		attach = exe.UretprobeMulti
	}
	l, err := attach(nil, program, o)
	if err != nil {
		return err
	}
	h.links = append(h.links, l)
	return nil
}

// file returns the name under which the child opens the file of a group.
func (h *holder) file(g *Group) string {
	return fmt.Sprintf("/proc/self/fd/%d", h.files[g.File])
}

// detach closes the links in parallel, because each perf event waits for a grace period of the
// kernel.
func (h *holder) detach() error {
	links := slices.Concat(h.links, h.holds)
	h.links, h.holds = nil, nil
	all := make([]error, len(links))
	var closing sync.WaitGroup
	for i, l := range links {
		closing.Go(func() { all[i] = l.Close() })
	}
	closing.Wait()
	return errors.Join(all...)
}
