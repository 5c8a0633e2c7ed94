// SPDX-License-Identifier: Apache-2.0
/*
 * resources_threads MODULE: makes threads and takes locks, and prints what module thread or lock
 * records. Only one thread at a time does what is recorded. See resources.h.
 */
#include "resources.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;

static void *nothing(void *arg)
{
	return arg;
}

static int nothing_plain(void *arg)
{
	return arg != NULL;
}

static void threads(void)
{
	pthread_attr_t attr;
	pthread_t t;
	thrd_t plain;
	char start[60];

	snprintf(start, sizeof(start), " start_routine=%p", (void *)nothing);
	need(pthread_create(&t, NULL, nothing, NULL) == 0, "pthread_create");
	allocated("pthread_create", "thread", (uintptr_t)t, 1, start);
	need(pthread_join(t, NULL) == 0, "pthread_join");
	freed("pthread_join", "thread", (uintptr_t)t);
	need(pthread_create(&t, NULL, nothing, NULL) == 0, "pthread_create");
	allocated("pthread_create", "thread", (uintptr_t)t, 1, start);
	need(pthread_detach(t) == 0, "pthread_detach");
	freed("pthread_detach", "thread", (uintptr_t)t);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	need(pthread_create(&t, &attr, nothing, NULL) == 0, "pthread_create");
	allocated("pthread_create", "thread", (uintptr_t)t, 1, start);
	freed("pthread_create", "thread", (uintptr_t)t);
	pthread_attr_destroy(&attr);
	pthread_attr_init(&attr);
	need(pthread_create(&t, &attr, nothing, NULL) == 0, "pthread_create");
	allocated("pthread_create", "thread", (uintptr_t)t, 1, start);
	need(pthread_join(t, NULL) == 0, "pthread_join");
	freed("pthread_join", "thread", (uintptr_t)t);
	pthread_attr_destroy(&attr);
	snprintf(start, sizeof(start), " start_routine=%p", (void *)nothing_plain);
	need(thrd_create(&plain, nothing_plain, NULL) == thrd_success, "thrd_create");
	allocated("thrd_create", "thread", (uintptr_t)plain, 1, start);
	need(thrd_join(plain, NULL) == thrd_success, "thrd_join");
	freed("thrd_join", "thread", (uintptr_t)plain);
	/* Nobody joins this one. */
	need(pthread_create(&t, NULL, nothing, NULL) == 0, "pthread_create");
	snprintf(start, sizeof(start), " start_routine=%p", (void *)nothing);
	allocated("pthread_create", "thread", (uintptr_t)t, 1, start);
}

/* waited logs that a lock was acquired, and the longest time, in ns, that the thread can have
 * waited. */
static void waited(const char *function, const char *resource, void *lock, uint64_t since)
{
	say("alloc %s %s %p 0..%lu", function, resource, lock, (unsigned long)(now() - since));
}

/* held logs that a lock was released, with the least and the most time that it can have been
 * held. */
static void held(const char *function, const char *resource, void *lock, uint64_t asked,
		 uint64_t got, uint64_t letting)
{
	say("free %s %s %p 0 held=%lu..%lu", function, resource, lock,
	    (unsigned long)(letting - got), (unsigned long)(now() - asked));
}

#define TAKE(lock_function, unlock_function, resource, lock, ...)               \
	do {                                                                    \
		uint64_t asked = now(), got, letting;                           \
                                                                                \
		need(lock_function(&lock, ##__VA_ARGS__) == 0, #lock_function); \
		got = now();                                                    \
		waited(#lock_function, resource, &lock, asked);                 \
		letting = now();                                                \
		need(unlock_function(&lock) == 0, #unlock_function);            \
		held(#unlock_function, resource, &lock, asked, got, letting);   \
	} while (0)

/* until_asleep waits until a thread sleeps. */
static void until_asleep(pid_t tid)
{
	char path[60], stat[300], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	do {
		int fd = open(path, O_RDONLY);
		ssize_t n = read(fd, stat, sizeof(stat) - 1);

		close(fd);
		stat[n > 0 ? n : 0] = 0;
		state = strrchr(stat, ')');
		sched_yield();
	} while (!state || state[2] != 'S');
}

static volatile pid_t waiter;

/* wait_for_mutex acquires the mutex when main releases it, and logs that. */
static void *wait_for_mutex(void *arg)
{
	uint64_t asked = now(), got, letting;

	waiter = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&mutex);
	got = now();
	waited("pthread_mutex_lock", "mutex", &mutex, asked);
	letting = now();
	pthread_mutex_unlock(&mutex);
	held("pthread_mutex_unlock", "mutex", &mutex, asked, got, letting);
	return arg;
}

/* wait_for_condition waits until main has set the condition, and releases the mutex in the
 * meantime. */
static void *wait_for_condition(void *arg)
{
	uint64_t asked = now(), got, letting, again;

	waiter = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&mutex);
	got = now();
	waited("pthread_mutex_lock", "mutex", &mutex, asked);
	letting = now();
	pthread_cond_wait(&condition, &mutex);
	again = now();
	/* main logs what it has done in the meantime. */
	say("alloc pthread_cond_wait mutex %p 0", (void *)&mutex);
	say("alloc pthread_cond_wait condition %p 0..%lu", (void *)&condition,
	    (unsigned long)(again - letting));
	freed("pthread_cond_wait", "condition", (uintptr_t)&condition);
	(void)got;
	letting = now();
	pthread_mutex_unlock(&mutex);
	held("pthread_mutex_unlock", "mutex", &mutex, asked, again, letting);
	return arg;
}

static void wait_each_other(void)
{
	uint64_t asked = now(), got, letting;
	pthread_t t;

	need(pthread_mutex_lock(&mutex) == 0, "pthread_mutex_lock");
	got = now();
	waited("pthread_mutex_lock", "mutex", &mutex, asked);
	need(pthread_create(&t, NULL, wait_for_mutex, NULL) == 0, "pthread_create");
	while (!waiter)
		sched_yield();
	until_asleep(waiter);
	letting = now();
	/* Logged before, because the other thread continues at once. */
	say("free pthread_mutex_unlock mutex %p 0 held=%lu..", (void *)&mutex,
	    (unsigned long)(letting - got));
	need(pthread_mutex_unlock(&mutex) == 0, "pthread_mutex_unlock");
	pthread_join(t, NULL);

	waiter = 0;
	need(pthread_create(&t, NULL, wait_for_condition, NULL) == 0, "pthread_create");
	while (!waiter)
		sched_yield();
	until_asleep(waiter);
	/* The other thread has released the mutex by now. */
	say("free pthread_cond_wait mutex %p 0 held=0..", (void *)&mutex);
	asked = now();
	need(pthread_mutex_lock(&mutex) == 0, "pthread_mutex_lock");
	got = now();
	waited("pthread_mutex_lock", "mutex", &mutex, asked);
	letting = now();
	need(pthread_cond_signal(&condition) == 0, "pthread_cond_signal");
	say("free pthread_mutex_unlock mutex %p 0 held=%lu..", (void *)&mutex,
	    (unsigned long)(letting - got));
	need(pthread_mutex_unlock(&mutex) == 0, "pthread_mutex_unlock");
	pthread_join(t, NULL);
}

static void locks(void)
{
	struct timespec soon = { 0, 0 };
	uint64_t asked;

	TAKE(pthread_mutex_lock, pthread_mutex_unlock, "mutex", mutex);
	TAKE(pthread_mutex_trylock, pthread_mutex_unlock, "mutex", mutex);
	TAKE(pthread_mutex_timedlock, pthread_mutex_unlock, "mutex", mutex, &soon);
	TAKE(pthread_rwlock_rdlock, pthread_rwlock_unlock, "rwlock", rwlock);
	TAKE(pthread_rwlock_wrlock, pthread_rwlock_unlock, "rwlock", rwlock);
	TAKE(pthread_rwlock_tryrdlock, pthread_rwlock_unlock, "rwlock", rwlock);
	TAKE(pthread_rwlock_trywrlock, pthread_rwlock_unlock, "rwlock", rwlock);
	need(sem_init(&semaphore, 0, 2) == 0, "sem_init");
	asked = now();
	need(sem_wait(&semaphore) == 0, "sem_wait");
	waited("sem_wait", "semaphore", &semaphore, asked);
	asked = now();
	need(sem_trywait(&semaphore) == 0, "sem_trywait");
	waited("sem_trywait", "semaphore", &semaphore, asked);
	need(sem_trywait(&semaphore) < 0, "sem_trywait");
	need(sem_post(&semaphore) == 0, "sem_post");
	freed("sem_post", "semaphore", (uintptr_t)&semaphore);
	wait_each_other();
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "thread") == 0)
		threads();
	else
		locks();
	return tell();
}
