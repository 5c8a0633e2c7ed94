// SPDX-License-Identifier: Apache-2.0
/*
 * resources_memory MODULE: maps and shares memory, and prints what module shmposix, shmsysv or mmap
 * records. See resources.h.
 */
#include "resources.h"
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

static const char *module;

static int is(const char *name)
{
	return strcmp(module, name) == 0;
}

static char *mapped(char *p, size_t size, const char *resource, const char *args)
{
	need(p != MAP_FAILED, "mmap");
	if (is("mmap"))
		say("alloc mmap mmap %p %zu", (void *)p, size);
	else if (is("shmposix"))
		say("alloc mmap %s %p %zu length=%#zx%s", resource, (void *)p, size, size, args);
	return p;
}

static void unmapped(void *p, size_t length, const char *resource)
{
	need(munmap(p, length) == 0, "munmap");
	if (is("mmap"))
		freed("munmap", "mmap", (uintptr_t)p);
	else if (is("shmposix"))
		say("free munmap %s %p 0 length=%#zx", resource, p, length);
}

static void anonymous(size_t page)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	const char *args = " prot=0x3 flags=0x22", *fixed = " prot=0x3 flags=0x32";
	char *p = mapped(mmap(NULL, 8 * page, prot, flags, -1, 0), 8 * page, "shmmap", args), *q;

	/* Unmapping a piece in the middle leaves two. */
	need(munmap(p + 2 * page, page) == 0, "munmap");
	if (is("mmap")) {
		freed("munmap", "mmap", (uintptr_t)p);
		allocated("munmap", "mmap", (uintptr_t)p, 2 * page, "");
		allocated("munmap", "mmap", (uintptr_t)(p + 3 * page), 5 * page, "");
	} else if (is("shmposix")) {
		say("free munmap shmmap %p 0 length=%#zx", (void *)p, page);
		allocated("munmap", "shmmap", (uintptr_t)p, 2 * page, "");
		allocated("munmap", "shmmap", (uintptr_t)(p + 3 * page), 5 * page, "");
	}
	/* A mapping over an existing one, and beyond its end. */
	q = mmap(p + 6 * page, 2 * page, prot, flags | MAP_FIXED, -1, 0);
	need(q == p + 6 * page, "mmap");
	if (is("mmap") || is("shmposix")) {
		const char *resource = is("mmap") ? "mmap" : "shmmap";

		freed("mmap", resource, (uintptr_t)(p + 3 * page));
		allocated("mmap", resource, (uintptr_t)(p + 3 * page), 3 * page, "");
	}
	mapped(q, 2 * page, "shmmap", fixed);
	unmapped(q, 2 * page, "shmmap");
	unmapped(p, 2 * page, "shmmap");
	unmapped(p + 3 * page, 3 * page, "shmmap");
	need(mmap(NULL, 0, prot, flags, -1, 0) == MAP_FAILED, "mmap of nothing");
	need(munmap(p, page) == 0, "munmap of nothing");
}

static void moves(size_t page)
{
	char *p = mmap(NULL, 4 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
	void *top;

	need(p != MAP_FAILED, "mmap");
	allocated("mmap", "mmap", (uintptr_t)p, 4 * page, "");
	q = mremap(p, 4 * page, 64 * page, MREMAP_MAYMOVE);
	need(q != MAP_FAILED, "mremap");
	freed("mremap", "mmap", (uintptr_t)p);
	allocated("mremap", "mmap", (uintptr_t)q, 64 * page, "");
	unmapped(q, 64 * page, "");
	top = sbrk(0);
	need(sbrk((intptr_t)page) == top, "sbrk");
	allocated("sbrk", "brk", (uintptr_t)top, page, "");
	need(sbrk(-(intptr_t)page) == (char *)top + page, "sbrk");
	freed("sbrk", "brk", (uintptr_t)top);
}

static void objects(size_t page)
{
	const char *name = "/rtrace-things", *posix = " name=/rtrace-things oflag=0x42 mode=0x180";
	int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
	char args[100];
	char *p;

	need(fd >= 0 && ftruncate(fd, (off_t)(2 * page)) == 0, "shm_open");
	if (is("shmposix")) {
		allocated("shm_open", "pshmobj", 0x90d75aa8, 1,
			  posix); /* one-at-a-time hash of the name */
		allocated("shm_open", "pshmfd", (uintptr_t)fd, 1, posix);
	}
	snprintf(args, sizeof(args), " prot=0x3 flags=0x1 fd=%d offset=0x0 name=%s mode=0x42", fd,
		 name);
	p = mapped(mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 2 * page,
		   "pshmmap", args);
	need(close(fd) == 0, "close");
	if (is("shmposix"))
		freed("close", "pshmfd", (uintptr_t)fd);
	unmapped(p, 2 * page, "pshmmap");
	need(shm_unlink(name) == 0, "shm_unlink");
	if (is("shmposix"))
		say("free shm_unlink pshmobj 0x90d75aa8 0 name=%s", name);
	fd = open("/proc/self/exe", O_RDONLY);
	need(fd >= 0, "open");
	snprintf(args, sizeof(args),
		 " prot=0x1 flags=0x2 fd=%d offset=%#zx name=/proc/self/exe mode=0x0", fd, page);
	p = mapped(mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, (off_t)page), page, "fshmmap",
		   args);
	close(fd);
	unmapped(p, page, "fshmmap");
}

static void segments(void)
{
	int id = shmget(IPC_PRIVATE, 12288, IPC_CREAT | 0600);
	char *p, *q, cpid[60];

	need(id >= 0, "shmget");
	allocated("shmget", "segment", (uintptr_t)id, 12288, "");
	snprintf(cpid, sizeof(cpid), " shmid=0x%x cpid=%d", id, getpid());
	p = shmat(id, NULL, 0);
	allocated("shmat", "address", (uintptr_t)p, 12288, cpid);
	q = shmat(id, NULL, SHM_RDONLY);
	allocated("shmat", "address", (uintptr_t)q, 12288, cpid);
	need(shmctl(id, IPC_RMID, NULL) == 0, "shmctl");
	say("free shmctl control 0x%x 0 cmd=IPC_RMID", id);
	need(shmdt(p) == 0, "shmdt");
	freed("shmdt", "address", (uintptr_t)p);
	need(shmdt(q) == 0, "shmdt");
	freed("shmdt", "address", (uintptr_t)q);
	freed("shmdt", "segment", (uintptr_t)id);
	id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	need(id >= 0, "shmget");
	allocated("shmget", "segment", (uintptr_t)id, 4096, "");
	need(shmctl(id, IPC_RMID, NULL) == 0 && shmdt(p) < 0, "shmctl");
	say("free shmctl control 0x%x 0 cmd=IPC_RMID", id);
	freed("shmctl", "segment", (uintptr_t)id);
}

int main(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	module = argc > 1 ? argv[1] : "";
	if (is("shmsysv")) {
		segments();
	} else {
		anonymous(page);
		objects(page);
	}
	if (is("mmap"))
		moves(page);
	return tell();
}
