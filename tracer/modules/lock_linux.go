package modules

import (
	"strconv"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
)

// The resources of module lock.
const (
	mutex     = "mutex"
	rwlock    = "rwlock"
	condition = "condition"
	semaphore = "semaphore"
)

// lock is the module for locks of threads. An allocation is a lock while it is held; its size is
// how long the thread has waited for it. Spin locks are left out: their functions begin with the
// loop, so a probe there would count iterations.
var lock = Module{
	Name: "lock", Desc: "locks: who holds them, and how long they were waited for",
	Resources: []trace.Resource{
		{Type: mutex, Desc: "mutex held, size: ns waited", RefCount: true},
		{Type: rwlock, Desc: "read-write lock held, size: ns waited", RefCount: true},
		{Type: condition, Desc: "wait for a condition, size: ns waited", RefCount: true},
		{Type: semaphore, Desc: "unit of a semaphore, size: ns waited", RefCount: true},
	},
	rows: []row{
		{
			symbols: []string{"pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock", "pthread_mutex_clocklock", "mtx_lock", "mtx_trylock", "mtx_timedlock"},
			args:    "p", result: 'd', ok: locked, does: []step{acquires(mutex)},
		},
		{symbols: []string{"pthread_mutex_unlock", "mtx_unlock"}, args: "p", result: 'd', ok: zero, frees: []freeing{releases(mutex, 0)}},
		{
			symbols: []string{
				"pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_timedrdlock", "pthread_rwlock_clockrdlock",
				"pthread_rwlock_wrlock", "pthread_rwlock_trywrlock", "pthread_rwlock_timedwrlock", "pthread_rwlock_clockwrlock",
			},
			args: "p", result: 'd', ok: zero, does: []step{acquires(rwlock)},
		},
		{symbols: []string{"pthread_rwlock_unlock"}, args: "p", result: 'd', ok: zero, frees: []freeing{releases(rwlock, 0)}},
		{
			symbols: []string{"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_wait", "cnd_timedwait"},
			args:    "pp", result: 'd', frees: []freeing{releases(mutex, 1)}, does: []step{waits},
		},
		{symbols: []string{"sem_wait", "sem_trywait", "sem_timedwait", "sem_clockwait"}, args: "p", result: 'd', ok: zero, does: []step{acquires(semaphore)}},
		{symbols: []string{"sem_post"}, args: "p", result: 'd', ok: zero, frees: []freeing{{resource: semaphore, id: arg(0)}}},
	},
}

// locked reports whether the thread has the lock, which it also gets if the previous owner has
// died.
func locked(c *call) bool { return zero(c) || int32(c.result()) == int32(unix.EOWNERDEAD) }

// holder is a thread that holds a lock.
type holder struct {
	lock uint64
	tid  uint32
}

// heldLocks returns the times, in ns, at which threads got locks.
func heldLocks(c *call) map[holder][]uint64 {
	return stateOf(c, func() map[holder][]uint64 { return map[holder][]uint64{} })
}

// waited returns how long a call took, in ns.
func waited(c *call) uint64 { return c.exit.Time - c.entry.Time }

// acquires is a step in which the thread gets the lock in the first argument.
func acquires(resource string) step {
	return func(c *call) { acquire(c, resource, c.word(0), waited(c)) }
}

// acquire records that the thread got a lock after waited ns.
func acquire(c *call, resource string, id, waited uint64) {
	if resource != semaphore {
		at := holder{id, c.entry.TID}
		held := heldLocks(c)
		held[at] = append(held[at], c.exit.Time)
	}
	c.alloc(resource, id, waited)
}

// releases is the end of the lock in an argument.
func releases(resource string, n int) freeing {
	return freeing{resource: resource, id: arg(n), args: func(c *call) []argument {
		at := holder{c.word(n), c.entry.TID}
		held := heldLocks(c)
		since := held[at]
		if len(since) == 0 {
			return nil // acquired before the trace
		}
		last := since[len(since)-1]
		if since = since[:len(since)-1]; len(since) == 0 {
			delete(held, at)
		} else {
			held[at] = since
		}
		return []argument{fixed("held", strconv.FormatUint(c.entry.Time-last, 10))}
	}}
}

// waits is the step for a wait for a condition, during which the mutex is free.
func waits(c *call) {
	acquire(c, mutex, c.word(1), 0) // also records that the previous holder has released it
	c.alloc(condition, c.word(0), waited(c))
	c.free(condition, c.word(0))
}
