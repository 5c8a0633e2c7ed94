package launch

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
)

// If this is in its environment, the test binary is a tracer that holds a command and then waits
// to be killed.
const asHolder = "RTRACE_LAUNCH_TEST_HOLD"

func TestMain(m *testing.M) {
	if program := os.Getenv(asHolder); program != "" {
		c, err := Start([]string{program}, Options{Files: [3]*os.File{os.Stdin, os.Stderr, os.Stderr}})
		if err == nil {
			_, err = c.Next()
		}
		fmt.Println(c.PID(), err)
		for {
			_ = unix.Pause() // until it is killed
		}
	}
	testutil.Main(m)
}

func started(t *testing.T, argv ...string) (c *Command, output *os.File) {
	t.Helper()
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { output.Close() })
	c, err = Start(argv, Options{Files: [3]*os.File{os.Stdin, output, output}})
	if err != nil {
		t.Fatal(err)
	}
	return c, output
}

// next runs the command to another place, which must exist.
func next(t *testing.T, c *Command) {
	t.Helper()
	if there, err := c.Next(); !there || err != nil {
		t.Fatalf("%v, %v", there, err)
	}
}

// A command is held when the loader has mapped everything that it needs according to ldd, and
// nothing of it has run. Then it is held at its first instruction, which is unchanged.
func TestHeld(t *testing.T) {
	library := testutil.Build(t, "launch", "-DLIBRARY", "-shared", "-fPIC")
	program := testutil.Build(t, "launch", "-DNEEDS_LIBRARY", library)
	c, output := started(t, program)
	next(t, c)
	if got, want := mapped(t, c.PID()), needs(t, program); !slices.Equal(got, want) {
		t.Errorf("mapped are %v, needed %v", got, want)
	}
	next(t, c)
	if there, err := c.Next(); there || err != nil {
		t.Errorf("after the last place: %v, %v", there, err)
	}
	testutil.CodeOf(t, c.PID()).Original(t)
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	if code := c.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	text, err := os.ReadFile(output.Name())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := testutil.ParseReport(text); err != nil || len(r.Done()) < 15 {
		t.Errorf("it printed %q, %v", text, err)
	}
}

// mapped lists the mapped files with code of a process, except the loader.
func mapped(t *testing.T, pid int) []string {
	t.Helper()
	all, err := proc.Maps(pid)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range all {
		if m.Inode != 0 && m.Perms&proc.Exec != 0 && !strings.HasPrefix(filepath.Base(m.Path), "ld-") {
			paths = append(paths, m.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// ldd does what the script of that name does, which not all machines have (ld.so(8)).
func ldd(program string) ([]byte, error) {
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "LD_TRACE_LOADED_OBJECTS=1")
	return cmd.Output()
}

// needs lists a program and the libraries that ldd prints for it, except the loader.
func needs(t *testing.T, program string) []string {
	t.Helper()
	text, err := ldd(program)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{program}
	for word := range strings.FieldsSeq(string(text)) {
		if !strings.HasPrefix(word, "/") || strings.HasPrefix(filepath.Base(word), "ld-") {
			continue
		}
		path, err := filepath.EvalSymlinks(word)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// A loader that is started with a program as an argument is not a static program.
func TestHeldByHand(t *testing.T) {
	program := testutil.Build(t, "launch")
	loader := ""
	text, err := ldd(program)
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		if strings.HasPrefix(filepath.Base(word), "ld-") {
			loader = word
		}
	}
	c, _ := started(t, loader, program)
	next(t, c)
	if got, want := mapped(t, c.PID()), needs(t, program); !slices.Equal(got, want) {
		t.Errorf("mapped are %v, needed %v", got, want)
	}
	c.Kill()
	if code := c.Wait(); code != 137 {
		t.Errorf("exit code %d", code)
	}
}

// A command ends with the process that holds it, without having run.
func TestHolderKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(exe)
	var output strings.Builder
	holder.Env, holder.Stderr = append(os.Environ(), asHolder+"="+testutil.Build(t, "launch")), &output
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, e := strconv.Atoi(strings.TrimSuffix(line, " <nil>\n"))
	if err != nil || e != nil {
		t.Fatalf("the holder printed %q", line)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Standard error is complete when the command has closed it as well.
	if err := holder.Wait(); err == nil || output.Len() > 0 {
		t.Errorf("%v; the command printed %q", err, output.String())
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
		t.Error(err)
	}
}

// Signals that arrive while the command is held are delivered when it is released.
func TestSignalsWhileHeld(t *testing.T) {
	c, _ := started(t, testutil.Build(t, "launch"))
	c.Signal(unix.SIGSTOP) // that of a terminal does not stop a group of processes without a parent
	next(t, c)
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, c.PID(), &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != nil || info.Code != 5 { // CLD_STOPPED
		t.Errorf("it has not stopped: %v, %d", err, info.Code)
	}
	c.Signal(unix.SIGCONT)
	if code := c.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	c, _ = started(t, testutil.Build(t, "launch"))
	c.Signal(unix.SIGTERM)
	if _, err := c.Next(); !errors.Is(err, ErrEnded) {
		t.Errorf("it was terminated, but: %v", err)
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
	if code := c.Wait(); code != 143 {
		t.Errorf("exit code %d", code)
	}
}

// Programs are found in the way of a shell.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{"a/x": 0o600, "b/x": 0o700, "a/y": 0o600} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "a/z"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a") + ":" + filepath.Join(dir, "b")
	for name, want := range map[string]struct {
		path string
		err  error
	}{
		"x": {filepath.Join(dir, "b/x"), nil}, "y": {"", ErrNotExecutable}, "z": {"", ErrNotFound}, "n": {"", ErrNotFound},
		"": {"", ErrNotFound}, "./n": {"./n", nil}, "/a/x": {"/a/x", nil},
	} {
		if got, err := find(name, path); got != want.path || !errors.Is(err, want.err) {
			t.Errorf("%q: %q, %v; want %+v", name, got, err, want)
		}
	}
}
