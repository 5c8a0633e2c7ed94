package testutil

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// KernelObjects holds the kernel's IDs of the BPF objects that a process has open.
type KernelObjects struct{ Programs, Maps, Links []uint32 }

// KernelObjectsOf lists the BPF objects of the descriptors of a process and its children. It
// skips descriptors that are closed in the meantime.
func KernelObjectsOf(t testing.TB, pid int) (all KernelObjects) {
	t.Helper()
	others, err := proc.Processes()
	if err != nil {
		t.Fatal(err)
	}
	all.add(t, pid)
	for _, other := range others {
		if s, err := proc.ReadStatus(other); err == nil && s.PPID == pid {
			all.add(t, other)
		}
	}
	return all
}

func (all *KernelObjects) add(t testing.TB, pid int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fdinfo/", pid)
	open, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return // the process has ended
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		text, _ := os.ReadFile(dir + fd.Name())
		// The text for a link contains its program as well.
		for line := range strings.Lines(string(text)) {
			for prefix, to := range map[string]*[]uint32{"prog_id:\t": &all.Programs, "map_id:\t": &all.Maps, "link_id:\t": &all.Links} {
				var id uint32
				if _, err := fmt.Sscanf(line, prefix+"%d", &id); err == nil {
					*to = append(*to, id)
				}
			}
		}
	}
}

// Commands of bpf(2) that return the next ID after a given one. They take no reference, unlike
// opening the object: if a map of programs is opened and closed twice before the kernel has
// emptied it, it is never freed (prog_array_map_clear in kernel/bpf/arraymap.c takes a
// reference each time).
const (
	nextProgram = 11
	nextMap     = 12
	nextLink    = 31
)

// enough is how long to wait for an object to disappear. That takes a few grace periods, and
// then kernel workers, which may have to wait for a CPU. An object that exists after this time
// is held by a process. (Grace periods may be expedited: a thousand of them were over in less
// than a second while the other work was not.)
const enough = 5 * time.Minute

// Gone waits until the kernel has freed all the objects, which takes grace periods. If one
// stays, the test fails and lists who holds it.
func (all *KernelObjects) Gone(t testing.TB) {
	t.Helper()
	for _, of := range []struct {
		next uintptr
		name string
		ids  []uint32
	}{
		// In the order in which they hold each other.
		{nextLink, "link_id", all.Links}, {nextProgram, "prog_id", all.Programs}, {nextMap, "map_id", all.Maps},
	} {
		for _, id := range of.ids {
			if !isGone(t, of.next, id) {
				t.Fatalf("the BPF object with %s %d is still there; descriptors of it: %v", of.name, id, holders(of.name, id))
			}
		}
	}
}

func isGone(t testing.TB, next uintptr, id uint32) bool {
	t.Helper()
	for began := time.Now(); time.Since(began) < enough; {
		attr := struct{ start, next, flags uint32 }{start: id - 1}
		_, _, errno := unix.Syscall(unix.SYS_BPF, next, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errors.Is(errno, unix.ENOENT) || errno == 0 && attr.next != id {
			return true
		}
		if errno != 0 {
			t.Fatalf("look for BPF object %d: %v", id, errno)
		}
		waitGrace()
	}
	return false
}

// waitGrace waits for a grace period of the kernel.
func waitGrace() {
	const global = 1 // MEMBARRIER_CMD_GLOBAL
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0)
}

// holders lists the descriptors of all processes that refer to a BPF object.
func holders(name string, id uint32) (found []string) {
	descriptors, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/fdinfo/*")
	line := fmt.Sprintf("%s:\t%d\n", name, id)
	for _, d := range descriptors {
		if text, _ := os.ReadFile(d); strings.Contains(string(text), line) {
			found = append(found, d)
		}
	}
	return found
}
