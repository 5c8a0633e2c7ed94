package selection_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/selection"
)

// cgroup makes a cgroup of v2 and returns its folder and the mount point of v2.
func cgroup(t *testing.T) (dir, mount string) {
	t.Helper()
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if unix.Statfs(mount, &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		dir := filepath.Join(mount, own("-select"))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("SKIPPED: needs the right to make a cgroup: %v", err)
		}
		t.Cleanup(func() { remove(t, dir) })
		return dir, mount
	}
	t.Skip("SKIPPED-KERNEL: cgroup v2 is not mounted here")
	return "", ""
}

// remove removes a cgroup after moving its processes out.
func remove(t *testing.T, dir string) {
	text, _ := os.ReadFile(dir + "/cgroup.procs")
	for pid := range strings.FieldsSeq(string(text)) {
		if err := os.WriteFile(filepath.Dir(dir)+"/cgroup.procs", []byte(pid), 0); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Error(err)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Error(err)
	}
}

func sub(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, path) })
	return path
}

func move(t *testing.T, dir string, pid int) {
	t.Helper()
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
}

func TestCgroup(t *testing.T) {
	dir, mount := cgroup(t)
	below := sub(t, dir, "be low")
	first, second := named(t, own("g"), nil), named(t, own("h"), nil)
	outside := named(t, own("g"), nil)
	move(t, dir, first)
	move(t, below, second)
	both := []int{first, second}
	slices.Sort(both)
	relative, err := filepath.Rel(mount, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, relative, "/" + relative, relative + "/", "../" + relative} {
		want(t, selection.Selection{Cgroups: []string{name}}, both...)
	}
	want(t, selection.Selection{Cgroups: []string{below}}, second)
	want(t, selection.Selection{Cgroups: []string{below, dir, below}}, both...)
	// Criteria of different kinds restrict each other; an ID adds a process.
	want(t, selection.Selection{Cgroups: []string{dir}, Comms: []string{own("g")}}, first)
	want(t, selection.Selection{Cgroups: []string{below}, PIDs: []int{outside}}, outside, second)
	none(t, selection.Selection{Cgroups: []string{below}, Comms: []string{own("g")}}, "in cgroup")
	none(t, selection.Selection{Cgroups: []string{relative + "/no"}}, "not found below")
	none(t, selection.Selection{Cgroups: []string{"/proc/self"}}, "not found below")
}

// A threaded cgroup lists only threads.
func TestThreadedCgroup(t *testing.T) {
	dir, _ := cgroup(t)
	threads := sub(t, dir, "threads")
	if err := os.WriteFile(threads+"/cgroup.type", []byte("threaded"), 0); err != nil {
		t.Skipf("SKIPPED-KERNEL: no threaded cgroups here: %v", err)
	}
	pid := named(t, own("t"), nil)
	move(t, dir, pid)
	for _, tid := range tasks(t, pid) {
		if err := os.WriteFile(threads+"/cgroup.threads", []byte(tid), 0); err != nil {
			t.Fatal(err)
		}
	}
	want(t, selection.Selection{Cgroups: []string{threads}}, pid)
}

func tasks(t *testing.T, pid int) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
