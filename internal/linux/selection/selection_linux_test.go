package selection_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/selection"
	"rtrace-bpf/internal/testutil"
)

// If this variable holds a Selection, the test binary searches for processes. A separate
// program is needed because processes that the searching program has started are not found.
const searching = "RTRACE_TEST_SELECTION"

func TestMain(m *testing.M) {
	if text := os.Getenv(searching); text != "" {
		var s selection.Selection
		err := json.Unmarshal([]byte(text), &s)
		var pids []int
		if err == nil {
			pids, err = s.Find()
		}
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(pids)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testutil.Main(m)
}

// search finds processes in a program of its own. message is the error, if any.
func search(t *testing.T, s selection.Selection) (pids []int, message string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), searching+"="+string(text))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, errOut.String()
	}
	if err := json.Unmarshal(out.Bytes(), &pids); err != nil {
		t.Fatal(err)
	}
	return pids, ""
}

// want checks that exactly these processes are found.
func want(t *testing.T, s selection.Selection, pids ...int) {
	t.Helper()
	got, message := search(t, s)
	if !slices.Equal(got, pids) {
		t.Errorf("%+v selects %v, want %v\n%s", s, got, pids, message)
	}
}

// none checks that nothing is found, and that the error contains the criteria.
func none(t *testing.T, s selection.Selection, text string) {
	t.Helper()
	if got, message := search(t, s); len(got) > 0 || !strings.Contains(message, text) {
		t.Errorf("%+v selects %v, %q, want an error with %q", s, got, message, text)
	}
}

// named starts a program under a name, which waits.
func named(t *testing.T, name string, credential *syscall.Credential) int {
	t.Helper()
	text, err := os.ReadFile(testutil.Build(t, "loop"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "rtrace-select-") // other users can read it there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, name)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	child := testutil.Start(t, cmd)
	child.Ready()
	return child.PID
}

// own makes a command name that no other process has.
func own(suffix string) string { return fmt.Sprintf("s%d%s", os.Getpid(), suffix) }

func TestPIDs(t *testing.T) {
	want(t, selection.Selection{PIDs: []int{7, 3, 7}}, 7, 3)
	self := selection.Selection{PIDs: []int{1, os.Getpid()}}
	if _, err := self.Find(); err == nil || !strings.Contains(err.Error(), "this program itself") {
		t.Errorf("itself: %v", err)
	}
}

func TestComm(t *testing.T) {
	first, second := named(t, own("a"), nil), named(t, own("a"), nil)
	other := named(t, own("b"), nil)
	pair := []int{first, second}
	slices.Sort(pair)
	want(t, selection.Selection{Comms: []string{own("a")}}, pair...)
	all := append(pair, other)
	slices.Sort(all)
	want(t, selection.Selection{Comms: []string{own("a"), own("b")}}, all...)
	// A process in PIDs comes first, and only once.
	want(t, selection.Selection{PIDs: []int{other}, Comms: []string{own("b")}}, other)
	want(t, selection.Selection{PIDs: []int{1, second}, Comms: []string{own("b")}}, 1, second, other)
	none(t, selection.Selection{Comms: []string{own("c")}}, `no process named "`+own("c")+`"`)
	// Processes that the searching program has started are not found.
	here := selection.Selection{Comms: []string{own("a")}}
	if pids, err := here.Find(); !errors.Is(err, selection.ErrNone) {
		t.Errorf("own children: %v, %v", pids, err)
	}
}

// The kernel keeps 15 bytes of a name.
func TestLongComm(t *testing.T) {
	name := own("-with-a-long-name")
	pid := named(t, name, nil)
	want(t, selection.Selection{Comms: []string{name}}, pid)
	want(t, selection.Selection{Comms: []string{name[:15]}}, pid)
	none(t, selection.Selection{Comms: []string{name[:14]}}, "no process named")
}

// Kernel threads and zombies are not found: there is nothing to trace in them.
func TestNothingToTrace(t *testing.T) {
	if name, err := os.ReadFile("/proc/2/comm"); err != nil || string(name) != "kthreadd\n" {
		t.Logf("no kernel threads to be seen here: %q, %v", name, err)
	} else {
		none(t, selection.Selection{Comms: []string{"kthreadd"}}, "no process named")
	}
	const name = "true"
	pid, err := syscall.ForkExec("/bin/"+name, []string{name}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	// WNOWAIT waits for the end and leaves the zombie.
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if pids, _ := search(t, selection.Selection{Comms: []string{name}}); slices.Contains(pids, pid) {
		t.Errorf("the zombie %d is found", pid)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
}

func TestUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, to start programs of other users")
	}
	const number = 54321 // nobody's
	mine := named(t, own("u"), nil)
	theirs := named(t, own("u"), &syscall.Credential{Uid: number, Gid: number})
	both := []int{mine, theirs}
	slices.Sort(both)
	comms := []string{own("u")}
	want(t, selection.Selection{Users: []string{fmt.Sprint(number)}}, theirs)
	want(t, selection.Selection{Comms: comms, Users: []string{"root"}}, mine)
	want(t, selection.Selection{Comms: comms, Users: []string{"0", fmt.Sprint(number)}}, both...)
	none(t, selection.Selection{Comms: comms, Users: []string{"54322"}}, `of user "54322"`)
}

func TestCheck(t *testing.T) {
	for text, s := range map[string]selection.Selection{
		"not positive":              {PIDs: []int{3, 0}},
		"empty name":                {Comms: []string{"a", ""}},
		`unknown user "no such"`:    {Users: []string{"no such"}},
		`unknown user "-1"`:         {Users: []string{"-1"}},
		"unknown user \"4294967296": {Users: []string{"4294967296"}},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", s, err, text)
		}
	}
	s := selection.Selection{PIDs: []int{1}, Comms: []string{"a"}, Users: []string{"root", "65534"}}
	if err := s.Check(); err != nil || s.Empty() || !new(selection.Selection).Empty() {
		t.Errorf("%v, empty: %v", err, s.Empty())
	}
}
