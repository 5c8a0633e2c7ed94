package modules

import (
	"slices"
	"strings"
)

// Kind returns sp-rtrace's name for the kind of a descriptor, given the text of its link in
// /proc/PID/fd.
func Kind(link string) string {
	kind, _, special := strings.Cut(link, ":")
	inner := strings.Trim(strings.TrimPrefix(link, "anon_inode:"), "[]")
	switch {
	case special && (kind == "socket" || kind == "pipe"):
		return kind
	case kind == "anon_inode" && inner == "eventpoll":
		return "epoll"
	case kind == "anon_inode" && slices.Contains([]string{"inotify", "eventfd", "signalfd", "timerfd"}, inner):
		return inner
	case link == "/dev/ptmx" || strings.HasPrefix(link, "/dev/pts/"):
		return "pty"
	case strings.HasPrefix(link, "/"):
		return "file"
	}
	return "(unknown)"
}

// descriptors holds what is known about the process's file descriptors.
type descriptors struct {
	now   func(fd int) string // returns what a descriptor is at this moment; the process is ahead of its events
	known map[uint32]descriptor
}

type descriptor struct {
	kind   string
	path   string // that a socket is bound to
	name   string // name with which a file or a shared memory object was opened
	mode   uint32 // and its mode
	closed bool
}

// begin adds the descriptors that were open before the trace.
func (d *descriptors) begin(open map[uint32]string) {
	d.known = make(map[uint32]descriptor, len(open))
	for fd, kind := range open {
		d.known[fd] = descriptor{kind: kind}
	}
}

// executed drops the descriptors that were closed by an exec.
func (d *descriptors) executed() {
	for fd := range d.known {
		if d.now != nil && d.now(int(fd)) == "" {
			delete(d.known, fd)
		}
	}
}

// get returns what is known about a descriptor. A descriptor without an event has no kind, unless
// now returns one.
func (d *descriptors) get(fd uint32) descriptor {
	x, ok := d.known[fd]
	if !ok {
		x = descriptor{closed: true}
		if d.now != nil {
			x.kind = d.now(int(fd))
		}
	}
	return x
}

func (d *descriptors) open(fd uint32, kind string) { d.known[fd] = descriptor{kind: kind} }

func (d *descriptors) close(fd uint32) { d.known[fd] = descriptor{closed: true} }

// describe returns sp-rtrace's name for the kind of a descriptor.
func (x descriptor) describe() string {
	switch {
	case x.closed && x.kind == "":
		return "(closed)"
	case x.kind == "":
		return "(unknown)"
	case x.kind == objectKind:
		return "file"
	}
	return x.kind
}
