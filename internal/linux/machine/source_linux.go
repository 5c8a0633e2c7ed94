package machine

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// source is a file of the kernel that stays open and is read repeatedly.
type source struct {
	f   *os.File
	fd  int // of f
	buf []byte
}

// openSource opens a file. Its text is expected to have less than size bytes; longer texts can
// still be read.
func openSource(path string, size int) (*source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &source{f, int(f.Fd()), make([]byte, 0, size)}, nil
}

// read returns the whole current text, which is valid until the next read.
func (s *source) read() ([]byte, error) {
	s.buf = s.buf[:0]
	for {
		if len(s.buf) == cap(s.buf) {
			s.buf = append(s.buf, 0)[:len(s.buf)]
		}
		n, err := unix.Pread(s.fd, s.buf[len(s.buf):cap(s.buf)], int64(len(s.buf)))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 || err != nil {
			return s.buf, err
		}
		s.buf = s.buf[:len(s.buf)+n]
	}
}

// once returns the text of a file that the kernel returns in one piece. It saves the read that
// would find the end.
func (s *source) once() ([]byte, error) {
	n, err := unix.Pread(s.fd, s.buf[:cap(s.buf)], 0)
	if errors.Is(err, unix.EINTR) {
		return s.once()
	}
	if err != nil {
		return nil, err
	}
	if n == cap(s.buf) {
		return s.read()
	}
	return s.buf[:n], nil
}

// Close closes the file.
func (s *source) Close() {
	if s != nil {
		s.f.Close()
	}
}

// clock returns CLOCK_MONOTONIC in ns.
func clock() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail with these arguments
	return ts.Nano()
}

// spent calls a function and returns the processor time that it used, in ns.
func spent(read func()) int64 {
	runtime.LockOSThread() // the clock is that of the thread
	defer runtime.UnlockOSThread()
	var before, after unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before) // cannot fail with these arguments
	read()
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after)
	return after.Nano() - before.Nano()
}

// cpuClock returns the processor time of all threads of a process, in ns.
func cpuClock(pid int) (int64, error) {
	const sched = 2 // CPUCLOCK_SCHED of the kernel's include/linux/posix-timers.h
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|sched, &ts)
	return ts.Nano(), err
}
