package modules

import (
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
)

const (
	fd = "fd"
	fp = "fp"

	messageControl = 4 // word of struct msghdr
)

// file is the module for descriptors and streams. It has the functions of sp-rtrace's module and,
// in addition, those with which current programs open files.
var file = Module{
	Name: "file", Desc: "file descriptors and streams",
	Resources: []trace.Resource{{Type: fd, Desc: "file descriptor"}, {Type: fp, Desc: "file pointer"}},
	rows: []row{
		{
			symbols: []string{"open", "open64"}, args: "sd", result: 'd', ok: notMinusOne,
			does: []step{opens("file", text("path", 0), hex("flags", 1))},
		},
		{
			symbols: []string{"openat", "openat64"}, args: "dsd", result: 'd', ok: notMinusOne,
			does: []step{opens("file", text("path", 1), hex("flags", 2))},
		},
		{
			symbols: []string{"__open_2", "__open64_2"}, args: "sd", result: 'd', ok: notMinusOne,
			does: []step{opens("file", text("path", 0), hex("flags", 1))},
		},
		{
			symbols: []string{"__openat_2", "__openat64_2"}, args: "dsd", result: 'd', ok: notMinusOne,
			does: []step{opens("file", text("path", 1), hex("flags", 2))},
		},
		{
			symbols: []string{"creat", "creat64"}, args: "sd", result: 'd', ok: notMinusOne,
			does: []step{opens("file", text("path", 0), hex("mode", 1))},
		},
		{
			symbols: []string{"close"}, args: "d", result: 'd', ok: zero, frees: []freeing{{resource: fd, id: fdArg(0)}},
			does: []step{closes(fdArg(0))},
		},
		{symbols: []string{"dup"}, args: "d", result: 'd', ok: notMinusOne, does: []step{duplicates}},
		{
			symbols: []string{"dup2", "dup3"}, args: "dd", result: 'd', ok: notMinusOne,
			frees: []freeing{{resource: fd, id: fdArg(1), only: replaces}}, does: []step{duplicatesOther},
		},
		{symbols: []string{"fcntl", "fcntl64"}, args: "dd", result: 'd', ok: duplicated, does: []step{duplicates}},
		{
			symbols: []string{"socket"}, args: "ddd", result: 'd', ok: notMinusOne,
			does: []step{opens("socket", hex("domain", 0), hex("type", 1), hex("protocol", 2))},
		},
		{
			symbols: []string{"socketpair"}, args: "dddp", result: 'd', ok: zero, out: 4, wrote: 8,
			does: []step{opensPair("socket", hex("domain", 0), hex("type", 1), hex("protocol", 2))},
		},
		{
			symbols: []string{"bind", "connect"}, args: "dBd", result: 'd', ok: zero,
			frees: []freeing{{resource: fd, id: fdArg(0)}}, does: []step{names},
		},
		{symbols: []string{"accept", "accept4"}, args: "dpp", result: 'd', ok: notMinusOne, does: []step{accepts}},
		{symbols: []string{"inotify_init"}, result: 'd', ok: notMinusOne, does: []step{opens("inotify")}},
		{symbols: []string{"inotify_init1"}, args: "d", result: 'd', ok: notMinusOne, does: []step{opens("inotify", hex("flags", 0))}},
		{symbols: []string{"eventfd"}, args: "dd", result: 'd', ok: notMinusOne, does: []step{opens("eventfd", hex("flags", 1))}},
		{symbols: []string{"signalfd"}, args: "dpd", result: 'd', ok: newSignals, does: []step{opens("signalfd", hex("flags", 2))}},
		{symbols: []string{"timerfd_create"}, args: "dd", result: 'd', ok: notMinusOne, does: []step{opens("timerfd", hex("flags", 1))}},
		{symbols: []string{"epoll_create"}, args: "d", result: 'd', ok: notMinusOne, does: []step{opens("epoll")}},
		{symbols: []string{"epoll_create1"}, args: "d", result: 'd', ok: notMinusOne, does: []step{opens("epoll", hex("flags", 0))}},
		{symbols: []string{"getpt"}, result: 'd', ok: notMinusOne, does: []step{opens("pty")}},
		{symbols: []string{"posix_openpt"}, args: "d", result: 'd', ok: notMinusOne, does: []step{opens("pty", hex("flags", 0))}},
		{symbols: []string{"pipe"}, args: "p", result: 'd', ok: zero, out: 1, wrote: 8, does: []step{opensPair("pipe")}},
		{symbols: []string{"pipe2"}, args: "pd", result: 'd', ok: zero, out: 1, wrote: 8, does: []step{opensPair("pipe", hex("flags", 1))}},
		{
			symbols: []string{"shm_open"}, args: "sdd", result: 'd', ok: notMinusOne,
			does: []step{opens(objectKind, text("path", 0), hex("flags", 1))},
		},
		{
			symbols: []string{"memfd_create"}, args: "sd", result: 'd', ok: notMinusOne,
			does: []step{opens("file", text("name", 0), hex("flags", 1))},
		},
		{
			symbols: []string{"mkstemp", "mkstemp64", "mkostemp", "mkostemp64", "mkstemps", "mkstemps64", "mkostemps", "mkostemps64"},
			args:    "p", result: 'd', ok: notMinusOne, out: 1, wrote: 64, does: []step{opens("file", argument{"path", writtenPath})},
		},
		{symbols: []string{"recvmsg"}, args: "dp", result: 'x', ok: received, out: 2, wrote: 64, via: messageControl, does: []step{receives}},

		{
			symbols: []string{"fopen", "fopen64"}, args: "ss", result: 'p', ok: notNull,
			does: []step{allocates(fp, text("path", 0), text("mode", 1))},
		},
		{
			symbols: []string{"freopen", "freopen64"}, args: "ssp", result: 'p', ok: notNull,
			frees: []freeing{{resource: fp, id: arg(2)}}, does: []step{allocates(fp, text("path", 0), text("mode", 1))},
		},
		{
			symbols: []string{"popen"}, args: "ss", result: 'p', ok: notNull,
			does: []step{allocates(fp, text("path", 0), text("mode", 1))},
		},
		{
			symbols: []string{"fdopen"}, args: "ds", result: 'p', ok: notNull,
			frees: []freeing{{resource: fd, id: fdArg(0)}}, does: []step{closes(fdArg(0)), allocates(fp, decimal("fd", 0), text("mode", 1))},
		},
		{symbols: []string{"tmpfile", "tmpfile64"}, result: 'p', ok: notNull, does: []step{allocates(fp)}},
		{symbols: []string{"opendir"}, args: "s", result: 'p', ok: notNull, does: []step{allocates(fp, text("path", 0))}},
		{
			symbols: []string{"fdopendir"}, args: "d", result: 'p', ok: notNull,
			frees: []freeing{{resource: fd, id: fdArg(0)}}, does: []step{closes(fdArg(0)), allocates(fp, decimal("fd", 0))},
		},
		// These end the stream whatever they return: an error means that the remaining data could
		// not be written.
		{symbols: []string{"fclose"}, args: "p", result: 'd', frees: []freeing{{resource: fp, id: arg(0)}}},
		{symbols: []string{"pclose"}, args: "p", result: 'd', ok: notMinusOne, frees: []freeing{{resource: fp, id: arg(0)}}},
		{symbols: []string{"closedir"}, args: "p", result: 'd', ok: zero, frees: []freeing{{resource: fp, id: arg(0)}}},
	},
}

// allocates is a step that records an allocation whose ID is the result.
func allocates(resource string, args ...argument) step {
	return func(c *call) { c.alloc(resource, c.result(), 1, args...) }
}

// opens is a step that records the descriptor that is the result.
func opens(kind string, args ...argument) step {
	return func(c *call) {
		c.fds.open(uint32(c.result()), kind)
		c.alloc(fd, fdResult(c), 1, args...)
	}
}

// opensPair is a step that records two descriptors.
func opensPair(kind string, args ...argument) step {
	return func(c *call) {
		for n := range 2 {
			if id, ok := c.written(n); ok {
				c.fds.open(uint32(id), kind)
				c.alloc(fd, id, 1, args...)
			}
		}
	}
}

func closes(id num) step { return func(c *call) { c.fds.close(uint32(id(c))) } }

// duplicates is the step for dup, and for fcntl where that does the same.
func duplicates(c *call) {
	from := c.fds.get(uint32(c.word(0)))
	to := from
	to.path, to.closed = "", false
	c.fds.known[uint32(c.result())] = to
	c.alloc(fd, fdResult(c), 1, decimal("oldfd", 0), argument{"type", func(*call) (string, bool) { return from.describe(), true }})
}

// duplicatesOther is the step for dup2. With the same descriptor twice it does nothing.
func duplicatesOther(c *call) {
	if uint32(c.word(0)) != uint32(c.word(1)) {
		duplicates(c)
	}
}

// replaces reports whether dup2 closes a descriptor.
func replaces(c *call) bool {
	return uint32(c.word(0)) != uint32(c.word(1)) && !c.fds.get(uint32(c.word(1))).closed
}

// duplicated reports whether fcntl has made a descriptor.
func duplicated(c *call) bool {
	command := uint32(c.word(1))
	return notMinusOne(c) && (command == unix.F_DUPFD || command == unix.F_DUPFD_CLOEXEC)
}

// newSignals reports whether signalfd has made a descriptor. Otherwise it has changed one.
func newSignals(c *call) bool { return notMinusOne(c) && uint32(c.word(0)) == math.MaxUint32 }

// names is the step for bind and connect. As in sp-rtrace, the descriptor is freed and allocated
// again, with the address.
func names(c *call) {
	family, path, args := addressOf(c)
	x := c.fds.get(uint32(c.word(0)))
	x.kind, x.closed = "socket", false
	if c.entry.Function.Symbol == "bind" {
		x.path = path
	}
	c.fds.known[uint32(c.word(0))] = x
	if family != "" {
		args = append([]argument{fixed("family", family)}, args...)
	}
	c.alloc(fd, fdArg(0)(c), 1, args...)
}

// accepts is the step for accept and accept4.
func accepts(c *call) {
	args := []argument{decimal("sockfd", 0)}
	if path := c.fds.get(uint32(c.word(0))).path; path != "" {
		args = append(args, fixed("path", path))
	}
	opens("socket", args...)(c)
}

// fixed returns an argument with this text.
func fixed(name, text string) argument {
	return argument{name, func(*call) (string, bool) { return text, true }}
}

// writtenPath returns the beginning of what the call has written.
func writtenPath(c *call) (string, bool) {
	data := c.exit.Data()
	for i, b := range data {
		if b == 0 {
			return string(data[:i]), true
		}
	}
	return string(data), len(data) > 0
}

// received reports whether recvmsg has received something.
func received(c *call) bool { return int64(c.result()) >= 0 && len(c.exit.Data()) > 0 }

// receives is the step for recvmsg, which may receive descriptors (SCM_RIGHTS).
func receives(c *call) {
	for _, id := range passed(c.exit.Data(), c.narrow) {
		c.fds.open(id, "")
		c.alloc(fd, uint64(id), 1, fixed("sockfd", strconv.Itoa(int(int32(c.word(0))))))
	}
}
