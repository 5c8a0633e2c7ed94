package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
)

// Selection selects processes: those in PIDs, and additionally all that have one of the Comms,
// are in one of the Cgroups and belong to one of the Users. An empty list of these three does
// not restrict. If all three are empty, only PIDs count.
type Selection struct {
	PIDs    []int
	Comms   []string // command names
	Cgroups []string // folders of cgroup v2, each including those below it
	Users   []string // names or numbers of effective users
}

// ErrNone reports that no process matches the selection.
var ErrNone = errors.New("no process")

// Empty reports whether s selects nothing at all.
func (s *Selection) Empty() bool { return len(s.PIDs) == 0 && !s.describes() }

// describes reports whether s has criteria other than IDs.
func (s *Selection) describes() bool { return len(s.Comms)+len(s.Cgroups)+len(s.Users) > 0 }

// Check returns an error if the selection is invalid. It does not look at processes.
func (s *Selection) Check() error {
	for _, pid := range s.PIDs {
		if pid <= 0 {
			return fmt.Errorf("process id %d is not positive", pid)
		}
	}
	if slices.Contains(s.Comms, "") || slices.Contains(s.Cgroups, "") {
		return errors.New("an empty name selects nothing")
	}
	_, err := userIDs(s.Users)
	return err
}

// Find returns the IDs of the processes that match now, without repetitions: first those in
// PIDs, then the others in ascending order. It does not check those in PIDs, but the caller's
// own process is an error. By other criteria it finds neither the caller nor processes that the
// caller has started, and no kernel threads or zombies, because there is nothing to trace in
// them.
func (s *Selection) Find() ([]int, error) {
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	if slices.Contains(s.PIDs, self) {
		return nil, fmt.Errorf("process %d is this program itself", self)
	}
	found := unique(s.PIDs)
	if !s.describes() {
		return found, nil
	}
	candidates, err := s.candidates()
	if err != nil {
		return nil, err
	}
	users, err := userIDs(s.Users)
	if err != nil {
		return nil, err
	}
	for _, pid := range candidates {
		if !slices.Contains(found, pid) && s.matches(pid, users) && !descends(pid, self) {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w %s", ErrNone, s.description())
	}
	return found, nil
}

// candidates returns the processes of the cgroups, or all processes.
func (s *Selection) candidates() ([]int, error) {
	if len(s.Cgroups) == 0 {
		return proc.Processes()
	}
	return cgroupProcesses(s.Cgroups)
}

// matches reports whether pid is a process with a program that has one of the names and users.
// A process that has ended does not match.
func (s *Selection) matches(pid int, users []uint32) bool {
	status, err := proc.ReadStatus(pid)
	if err != nil || status.TGID != pid {
		return false
	}
	if len(users) > 0 && !slices.Contains(users, status.UID[effective]) {
		return false
	}
	if len(s.Comms) > 0 && !slices.ContainsFunc(s.Comms, func(name string) bool { return cut(name) == status.Name }) {
		return false
	}
	if kernel, err := proc.IsKernelThread(pid); err != nil || kernel {
		return false
	}
	zombie, err := proc.IsZombie(pid)
	return err == nil && !zombie
}

// effective is the index of the effective user in a process's user IDs.
const effective = 1

// maxComm is how many bytes of a command name the kernel keeps (TASK_COMM_LEN without the NUL).
const maxComm = 15

// cut truncates a command name as the kernel does.
func cut(name string) string { return name[:min(len(name), maxComm)] }

// descends reports whether pid is ancestor or one of its descendants.
func descends(pid, ancestor int) bool {
	for pid > 1 && pid != ancestor {
		status, err := proc.ReadStatus(pid)
		if err != nil || status.PPID == pid {
			return false
		}
		pid = status.PPID
	}
	return pid == ancestor
}

// unique returns the IDs without repetitions, in their order.
func unique(pids []int) []int {
	var out []int
	for _, pid := range pids {
		if !slices.Contains(out, pid) {
			out = append(out, pid)
		}
	}
	return out
}

// description describes the criteria.
func (s *Selection) description() string {
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Trim(fmt.Sprintf("%q", names), "[]"))
		}
	}
	add("named", s.Comms)
	add("in cgroup", s.Cgroups)
	add("of user", s.Users)
	return strings.Join(parts, " ")
}
