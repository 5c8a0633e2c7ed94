package testutil

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// WaitFile waits until path exists. by is the process that is to create it; if that ends first,
// the test fails. If by is nil, WaitFile waits as long as the test may run.
func WaitFile(t testing.TB, path string, by *Child) {
	t.Helper()
	if !FileOrEnd(t, path, by) {
		t.Fatalf("%s ended with code %d and did not create %s\n%s", by.cmd.Path, by.Wait(), path, by.Stderr())
	}
}

// FileOrEnd waits until path exists. It returns false if the process that is to create it ends
// first.
func FileOrEnd(t testing.TB, path string, by *Child) bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatalf("watch for %s: %v", path, err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		t.Fatalf("watch for %s: %v", path, err)
	}
	if by != nil {
		done := make(chan struct{})
		defer close(done)
		go func() {
			select {
			case <-by.Exited():
				// A deadline in the past ends the read below.
				_ = events.SetReadDeadline(time.Unix(1, 0))
			case <-done:
			}
		}()
	}
	// The first check comes after the watch began, so no creation is missed.
	buf := make([]byte, 4096)
	for {
		if _, err := os.Stat(path); err == nil {
			return true
		}
		if _, err := events.Read(buf); err != nil {
			if os.IsTimeout(err) {
				_, err := os.Stat(path)
				return err == nil
			}
			t.Fatalf("watch for %s: %v", path, err)
		}
	}
}
