// SPDX-License-Identifier: Apache-2.0
/*
 * resources_file: opens and closes descriptors and streams in all ways, in its working directory.
 * See resources.h.
 */
#include "resources.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

static char args[600];

/* with formats the arguments of a line. */
static __attribute__((format(printf, 1, 2))) const char *with(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(args, sizeof(args), format, list);
	va_end(list);
	return args;
}

static int opened(const char *function, int fd, const char *more)
{
	need(fd >= 0, function);
	allocated(function, "fd", (uintptr_t)fd, 1, more);
	return fd;
}

static void closed(int fd)
{
	need(close(fd) == 0, "close");
	freed("close", "fd", (uintptr_t)fd);
}

static FILE *stream(const char *function, FILE *f, const char *more)
{
	need(f != NULL, function);
	allocated(function, "fp", (uintptr_t)f, 1, more);
	return f;
}

static void files(void)
{
	char name[] = "madeXXXXXX", other[] = "otherXXXXXX.txt";
	int fd = opened("creat", creat("file", 0640), " path=file mode=0x1a0"), dup_fd, to;

	closed(fd);
	fd = opened("open", open("file", O_RDONLY), " path=file flags=0x0");
	need(open("no/such/file", O_RDONLY) < 0 && close(-1) < 0, "errors");
	dup_fd = opened("dup", dup(fd), with(" oldfd=%d type=file", fd));
	to = dup2(fd, 60);
	opened("dup2", to, with(" oldfd=%d type=file", fd));
	freed("dup2", "fd", (uintptr_t)to);
	opened("dup2", dup2(dup_fd, to), with(" oldfd=%d type=file", dup_fd));
	need(dup2(to, to) == to, "dup2");
	freed("dup3", "fd", (uintptr_t)to);
	opened("dup3", dup3(dup_fd, to, O_CLOEXEC), with(" oldfd=%d type=file", dup_fd));
	opened("fcntl", fcntl(fd, F_DUPFD, 61), with(" oldfd=%d type=file", fd));
	opened("fcntl", fcntl(fd, F_DUPFD_CLOEXEC, 62), with(" oldfd=%d type=file", fd));
	need(fcntl(fd, F_GETFD) == 0, "fcntl");
	closed(fd);
	closed(dup_fd);
	closed(to);
	closed(61);
	closed(62);
	fd = opened("openat", openat(AT_FDCWD, "file", O_RDWR | O_CLOEXEC),
		    " path=file flags=0x80002");
	closed(fd);
	fd = mkstemp(name);
	closed(opened("mkstemp", fd, with(" path=%s", name)));
	unlink(name);
	fd = mkostemps(other, 4, O_CLOEXEC);
	closed(opened("mkostemps", fd, with(" path=%s", other)));
	unlink(other);
	closed(opened("memfd_create", memfd_create("memory", 0), " name=memory flags=0x0"));
}

static void special(void)
{
	sigset_t none;
	int pair[2], fd;

	sigemptyset(&none);
	need(pipe(pair) == 0, "pipe");
	opened("pipe", pair[0], "");
	opened("pipe", pair[1], "");
	fd = opened("dup", dup(pair[0]), with(" oldfd=%d type=pipe", pair[0]));
	closed(fd);
	closed(pair[0]);
	closed(pair[1]);
	need(pipe2(pair, O_CLOEXEC) == 0, "pipe2");
	opened("pipe2", pair[0], " flags=0x80000");
	opened("pipe2", pair[1], " flags=0x80000");
	closed(pair[0]);
	closed(pair[1]);
	closed(opened("inotify_init", inotify_init(), ""));
	closed(opened("inotify_init1", inotify_init1(IN_NONBLOCK), " flags=0x800"));
	fd = opened("eventfd", eventfd(3, EFD_NONBLOCK), " flags=0x800");
	closed(opened("dup", dup(fd), with(" oldfd=%d type=eventfd", fd)));
	closed(fd);
	fd = opened("signalfd", signalfd(-1, &none, 0), " flags=0x0");
	need(signalfd(fd, &none, 0) == fd, "signalfd");
	closed(fd);
	closed(opened("timerfd_create", timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
		      " flags=0x80000"));
	closed(opened("epoll_create", epoll_create(9), ""));
	closed(opened("epoll_create1", epoll_create1(0), " flags=0x0"));
	fd = posix_openpt(O_RDWR);
	if (fd >= 0)
		closed(opened("posix_openpt", fd, " flags=0x2"));
}

/* passes sends a descriptor to the program itself. */
static void passes(int from, int to, int what)
{
	char data = 'x', room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &data, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int got;

	memset(room, 0, sizeof(room));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &what, sizeof(what));
	need(sendmsg(from, &m, 0) == 1, "sendmsg");
	memset(room, 0, sizeof(room));
	need(recvmsg(to, &m, 0) == 1 && m.msg_controllen > 0, "recvmsg");
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(got));
	opened("recvmsg", got, with(" sockfd=%d", to));
	closed(got);
	need(send(from, "y", 1, 0) == 1, "send");
	m.msg_controllen = sizeof(room);
	need(recvmsg(to, &m, 0) == 1, "recvmsg");
}

static void sockets(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "socket" };
	struct sockaddr_un abstract = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(in);
	int pair[2], listener, other, fd;

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	opened("socketpair", pair[0], " domain=0x1 type=0x1 protocol=0x0");
	opened("socketpair", pair[1], " domain=0x1 type=0x1 protocol=0x0");
	passes(pair[0], pair[1], 0);
	closed(pair[0]);
	closed(pair[1]);

	listener = opened("socket", socket(AF_INET, SOCK_STREAM, 0),
			  " domain=0x2 type=0x1 protocol=0x0");
	need(bind(listener, (void *)&in, sizeof(in)) == 0, "bind");
	freed("bind", "fd", (uintptr_t)listener);
	opened("bind", listener, " family=AF_INET address:port=127.0.0.1:0");
	need(listen(listener, 1) == 0 && getsockname(listener, (void *)&in, &length) == 0,
	     "listen");
	other = opened("socket", socket(AF_INET, SOCK_STREAM, 0),
		       " domain=0x2 type=0x1 protocol=0x0");
	need(connect(other, (void *)&in, sizeof(in)) == 0, "connect");
	freed("connect", "fd", (uintptr_t)other);
	opened("connect", other,
	       with(" family=AF_INET address:port=127.0.0.1:%d", ntohs(in.sin_port)));
	fd = opened("accept", accept(listener, NULL, NULL), with(" sockfd=%d", listener));
	closed(fd);
	closed(other);
	closed(listener);

	listener = opened("socket", socket(AF_UNIX, SOCK_STREAM, 0),
			  " domain=0x1 type=0x1 protocol=0x0");
	need(bind(listener, (void *)&un, sizeof(un)) == 0 && listen(listener, 1) == 0, "bind");
	freed("bind", "fd", (uintptr_t)listener);
	opened("bind", listener, " family=AF_UNIX path=socket");
	other = opened("socket", socket(AF_UNIX, SOCK_STREAM, 0),
		       " domain=0x1 type=0x1 protocol=0x0");
	need(connect(other, (void *)&un, sizeof(un)) == 0, "connect");
	freed("connect", "fd", (uintptr_t)other);
	opened("connect", other, " family=AF_UNIX path=socket");
	fd = opened("accept4", accept4(listener, NULL, NULL, SOCK_CLOEXEC),
		    with(" sockfd=%d path=socket", listener));
	closed(fd);
	closed(other);
	closed(listener);
	unlink("socket");

	fd = opened("socket", socket(AF_UNIX, SOCK_DGRAM, 0), " domain=0x1 type=0x2 protocol=0x0");
	length = offsetof(struct sockaddr_un, sun_path) +
		 (socklen_t)snprintf(abstract.sun_path + 1, 40, "resources-%d", getpid()) + 1;
	need(bind(fd, (void *)&abstract, length) == 0, "bind");
	freed("bind", "fd", (uintptr_t)fd);
	opened("bind", fd, with(" family=AF_UNIX path=@%s", abstract.sun_path + 1));
	closed(fd);

	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	if (fd < 0)
		return;
	opened("socket", fd, " domain=0xa type=0x2 protocol=0x0");
	if (bind(fd, (void *)&in6, sizeof(in6)) == 0) {
		freed("bind", "fd", (uintptr_t)fd);
		opened("bind", fd, " family=AF_INET6 address:port=[::1]:0");
	}
	closed(fd);
}

static void streams(void)
{
	FILE *f = stream("fopen", fopen("file", "w"), " path=file mode=w");
	DIR *d;
	int fd;

	need(fopen("no/such/file", "r") == NULL, "fopen");
	freed("freopen", "fp", (uintptr_t)f);
	f = stream("freopen", freopen("/dev/null", "r", f), " path=/dev/null mode=r");
	fclose(f);
	freed("fclose", "fp", (uintptr_t)f);
	f = stream("tmpfile", tmpfile(), "");
	fclose(f);
	freed("fclose", "fp", (uintptr_t)f);
	fd = opened("open", open("/dev/null", O_WRONLY), " path=/dev/null flags=0x1");
	f = fdopen(fd, "w");
	freed("fdopen", "fd", (uintptr_t)fd);
	stream("fdopen", f, with(" fd=%d mode=w", fd));
	fclose(f);
	freed("fclose", "fp", (uintptr_t)f);
	f = stream("popen", popen("exit 3", "r"), " path=exit_3 mode=r");
	pclose(f);
	freed("pclose|fclose", "fp", (uintptr_t)f); /* one function in glibc */
	d = opendir(".");
	need(d != NULL, "opendir");
	allocated("opendir", "fp", (uintptr_t)d, 1, " path=.");
	closedir(d);
	freed("closedir", "fp", (uintptr_t)d);
	fd = opened("open", open(".", O_RDONLY | O_DIRECTORY),
		    with(" path=. flags=%#x", O_DIRECTORY));
	d = fdopendir(fd);
	freed("fdopendir", "fd", (uintptr_t)fd);
	allocated("fdopendir", "fp", (uintptr_t)d, 1, with(" fd=%d", fd));
	closedir(d);
	freed("closedir", "fp", (uintptr_t)d);
}

int main(void)
{
	files();
	special();
	sockets();
	streams();
	return tell();
}
