package testutil

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// WaitSize waits until the file at path, which must exist, has the given number of bytes. If
// by, the process that writes it, ends earlier, the test fails.
func WaitSize(t testing.TB, path string, size int64, by *Child) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatalf("watch %s: %v", path, err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		t.Fatalf("watch %s: %v", path, err)
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-by.Exited():
			_ = events.SetReadDeadline(time.Unix(1, 0)) // ends the read below
		case <-done:
		}
	}()
	// The first check comes after the watch began, so no change is missed.
	buf := make([]byte, 4096)
	for {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() >= size {
			return
		}
		if _, err := events.Read(buf); err != nil {
			t.Fatalf("%s has %d bytes when its writer ends: %v\n%s", path, info.Size(), err, by.Stderr())
		}
	}
}
