package keeper

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// sockets returns the two ends of the tracer's socket.
func sockets(t *testing.T) (tracer, child *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	tracer, child = os.NewFile(uintptr(pair[0]), "tracer"), os.NewFile(uintptr(pair[1]), "child")
	t.Cleanup(func() {
		tracer.Close()
		child.Close()
	})
	return tracer, child
}

// inode distinguishes open files.
func inode(t *testing.T, fd int) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// Descriptors arrive in their order, however many messages they need, and nothing that follows
// them is consumed.
func TestDescriptorsArrive(t *testing.T) {
	for _, n := range []int{0, 3, maxDescriptors, maxDescriptors + 1, 2*maxDescriptors + 5} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			tracer, child := sockets(t)
			dir := t.TempDir()
			var fds []int
			for i := range n {
				f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				fds = append(fds, int(f.Fd()))
			}
			count := n / 3
			sent := make(chan error, 1)
			go func() {
				err := give(tracer, gift{uint32(count), uint32(n - count)}, fds)
				_, errAfter := tracer.WriteString("after!")
				sent <- errors.Join(err, errAfter)
			}()
			programs, files, err := take(child)
			if err := errors.Join(err, <-sent); err != nil {
				t.Fatal(err)
			}
			if len(programs) != count || len(files) != n-count {
				t.Fatalf("%d programs and %d files of %d arrived", len(programs), len(files), n)
			}
			for i, fd := range append(programs, files...) {
				if inode(t, fd) != inode(t, fds[i]) {
					t.Errorf("descriptor %d is another one", i)
				}
				if err := unix.Close(fd); err != nil {
					t.Error(err)
				}
			}
			after := make([]byte, 6)
			if _, err := io.ReadFull(child, after); err != nil || string(after) != "after!" {
				t.Errorf("what follows is %q, %v", after, err)
			}
		})
	}
}

// A tracer that ends before it has given anything ends the child.
func TestNothingIsGiven(t *testing.T) {
	tracer, child := sockets(t)
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := take(child); !errors.Is(err, io.EOF) {
		t.Errorf("the error is %v", err)
	}
}
