package selection

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// cgroupProcesses returns the IDs of the processes in the cgroups and their descendants, in
// ascending order.
func cgroupProcesses(cgroups []string) ([]int, error) {
	var pids []int
	for _, name := range cgroups {
		dir, err := cgroupDir(name)
		if err != nil {
			return nil, err
		}
		if pids, err = walkCgroup(pids, dir); err != nil {
			return nil, fmt.Errorf("read cgroup %q: %w", name, err)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// cgroupDir returns the folder of a cgroup, given its path or its path below the mount point of
// cgroup v2, as /proc/PID/cgroup shows it.
func cgroupDir(name string) (string, error) {
	dirs := []string{}
	if filepath.IsAbs(name) {
		dirs = append(dirs, filepath.Clean(name))
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroups: %w", err)
	}
	mounts := cgroupMounts(text)
	for _, mount := range mounts {
		dirs = append(dirs, filepath.Join(mount, filepath.Clean("/"+name)))
	}
	for _, dir := range dirs {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir, nil
		}
	}
	if len(mounts) == 0 {
		return "", fmt.Errorf("cgroup %q: cgroup v2 is not mounted here", name)
	}
	return "", fmt.Errorf("cgroup %q: not found below %s", name, strings.Join(mounts, " or "))
}

// cgroupMounts returns the mount points of cgroup v2 from the text of /proc/self/mountinfo: "36
// 35 98:0 /root /mount options - type source options", with a variable number of fields before
// the dash.
func cgroupMounts(text []byte) []string {
	var mounts []string
	for line := range bytes.Lines(text) {
		before, after, ok := strings.Cut(string(line), " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		mounts = append(mounts, unescape(fields[4]))
	}
	return mounts
}

// unescape reverses the escapes of names in mountinfo.
func unescape(name string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(name)
}

// walkCgroup appends the processes in dir and below. A cgroup that is removed in the meantime
// has none.
func walkCgroup(pids []int, dir string) ([]int, error) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !entry.IsDir():
			return err
		}
		members, err := cgroupMembers(path)
		pids = append(pids, members...)
		return err
	})
	return pids, err
}

// cgroupMembers returns the processes in a cgroup, without those below it. A threaded cgroup
// lists only its threads, from which the processes are found.
func cgroupMembers(dir string) ([]int, error) {
	pids, err := numbers(dir + "/cgroup.procs")
	if errors.Is(err, unix.EOPNOTSUPP) {
		pids, err = numbers(dir + "/cgroup.threads")
		for i, tid := range pids {
			if status, err := proc.ReadStatus(tid); err == nil {
				pids[i] = status.TGID
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		err = nil // the cgroup was removed
	}
	return pids, err
}

// numbers reads a file with one number per line. It skips 0, which stands for processes that
// are not visible in this PID namespace.
func numbers(path string) ([]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []int
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if n, err := strconv.Atoi(lines.Text()); err == nil && n > 0 {
			all = append(all, n)
		}
	}
	return all, lines.Err()
}
