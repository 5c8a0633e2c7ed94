package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/linux/proc"
)

// Selection says which processes are meant: those of PIDs, and besides all that
// have one of the Comms, are in one of the Cgroups and belong to one of the
// Users. An empty list of these three does not restrict; if all three are empty,
// PIDs alone count.
type Selection struct {
	PIDs    []int
	Comms   []string // command names
	Cgroups []string // folders of cgroup v2, each with those below it
	Users   []string // names or numbers, of the effective user
}

// ErrNone says that no process is as it was described.
var ErrNone = errors.New("no process")

// Empty says whether nothing is selected at all.
func (s *Selection) Empty() bool { return len(s.PIDs) == 0 && !s.describes() }

// describes says whether processes are to be searched for.
func (s *Selection) describes() bool { return len(s.Comms)+len(s.Cgroups)+len(s.Users) > 0 }

// Check says what can be known to be wrong before any process is looked at.
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

// Find returns the ids of the processes as they are now, each once: first those
// that were named by id, then the others by number. Ids that were named are not
// looked at, but the caller's own process is an error. Neither it nor processes
// that it started are found by description, nor are kernel threads and zombies,
// since there is nothing to trace in them.
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

// candidates returns the processes of the cgroups, or all.
func (s *Selection) candidates() ([]int, error) {
	if len(s.Cgroups) == 0 {
		return proc.Processes()
	}
	return cgroupProcesses(s.Cgroups)
}

// matches says whether pid is a process with a program that has one of the names
// and users. A process that has ended does not match.
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

// effective is the place of the effective user among those of a process.
const effective = 1

// maxComm is how much of a command name the kernel keeps (TASK_COMM_LEN without
// the NUL).
const maxComm = 15

// cut returns a command name as the kernel keeps it.
func cut(name string) string { return name[:min(len(name), maxComm)] }

// descends says whether pid is ancestor or was started by it, or by one of those
// that it started.
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

// unique returns the ids without repetitions, in their order.
func unique(pids []int) []int {
	var out []int
	for _, pid := range pids {
		if !slices.Contains(out, pid) {
			out = append(out, pid)
		}
	}
	return out
}

// description says what was searched for.
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
