package modules

import (
	"rtrace-bpf/trace"
)

const threadResource = "thread"

// thread is the module for threads that must be joined. Other records of the trace contain the
// ends of threads.
var thread = Module{
	Name: "thread", Desc: "threads that are to be joined",
	Resources: []trace.Resource{{Type: threadResource, Desc: "joinable thread"}},
	rows: []row{
		{symbols: []string{"pthread_create"}, args: "pppp", result: 'd', ok: zero, out: 1, wrote: 8, does: []step{creates}},
		{
			symbols: []string{"pthread_join", "pthread_tryjoin_np", "pthread_timedjoin_np", "pthread_clockjoin_np", "pthread_detach"}, args: "x", result: 'd', ok: zero,
			frees: []freeing{{resource: threadResource, id: arg(0)}},
		},
		{symbols: []string{"pthread_attr_setdetachstate"}, args: "pd", result: 'd', ok: zero, does: []step{setsDetached}},
		{symbols: []string{"pthread_attr_init", "pthread_attr_destroy"}, args: "p", result: 'd', does: []step{forgetsAttributes}},
		{symbols: []string{"thrd_create"}, args: "ppp", result: 'd', ok: zero, out: 1, wrote: 8, does: []step{createsPlain}},
		{
			symbols: []string{"thrd_join", "thrd_detach"}, args: "x", result: 'd', ok: zero,
			frees: []freeing{{resource: threadResource, id: arg(0)}},
		},
	},
}

// detachedAttributes returns the addresses of attributes with which threads are detached from the
// start.
func detachedAttributes(c *call) map[uint64]bool {
	return stateOf(c, func() map[uint64]bool { return map[uint64]bool{} })
}

const createDetached = 1 // PTHREAD_CREATE_DETACHED

func setsDetached(c *call) {
	if uint32(c.word(1)) == createDetached {
		detachedAttributes(c)[c.word(0)] = true
	} else {
		delete(detachedAttributes(c), c.word(0))
	}
}

func forgetsAttributes(c *call) { delete(detachedAttributes(c), c.word(0)) }

// creates is the step for pthread_create. A thread that is detached from the start cannot be
// joined.
func creates(c *call) {
	id, ok := c.pointer()
	if !ok {
		return
	}
	c.alloc(threadResource, id, 1, long("start_routine", 2))
	if attr := c.word(1); attr != 0 && detachedAttributes(c)[attr] {
		c.free(threadResource, id)
	}
}

func createsPlain(c *call) {
	if id, ok := c.pointer(); ok {
		c.alloc(threadResource, id, 1, long("start_routine", 1))
	}
}
