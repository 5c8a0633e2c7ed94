package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

const nobody = 65534

// capabilities are those that the command may need (include/uapi/linux/capability.h).
var capabilities = map[string]uintptr{
	"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_SYS_RESOURCE": 24, "CAP_PERFMON": 38, "CAP_BPF": 39,
}

// forAll makes a folder that every user can use, with the command in it, because the folder
// of the test binary may be closed to others.
func forAll(t *testing.T) (dir, exe string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rtrace-bpf-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe = filepath.Join(dir, "rtrace-bpf")
	if err := os.WriteFile(exe, self, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, exe
}

// unprivileged returns the command as the user nobody with the given capabilities alone,
// ready to be started in a folder that it can write to.
func unprivileged(t *testing.T, has []uintptr, args ...string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	dir, exe := forAll(t)
	cmd = command(t, args...)
	cmd.Path, cmd.Dir = exe, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: has}
	return cmd, dir
}

// TestCapabilitiesThatAreNamedAreEnough checks that the command names the capabilities that
// it lacks, that it records several processes completely with those alone, and that it
// needs each of them. Their number depends on the kernel.
func TestCapabilitiesThatAreNamedAreEnough(t *testing.T) {
	testutil.NeedBPF(t)
	var has []uintptr
	for {
		children := []*testutil.Child{waiting(t, "alloc", "2", "200"), waiting(t, "alloc", "1", "200"), waiting(t, "alloc", "1", "200")}
		cmd, dir := unprivileged(t, has, "-p", list(children...), "--ready-file", "ready", "-b", "0")
		r := &running{Child: testutil.Start(t, cmd), t: t, dir: dir}
		recorded := testutil.FileOrEnd(t, filepath.Join(dir, "ready"), r.Child)
		for _, child := range children {
			child.Go()
			child.Succeed() // unharmed
		}
		if recorded {
			r.ends(cli.OK)
			for i, want := range []int{400, 200, 200} {
				if n := count(r.traceOf(children[i]), "calloc"); n != want {
					t.Errorf("%d calls of calloc in the trace, want %d", n, want)
				}
			}
			break
		}
		r.ends(cli.Failed)
		lacks := lacking(t, r.Stderr())
		t.Logf("with %d capabilities: %s", len(has), bytes.TrimSpace(r.Stderr()))
		for _, c := range lacks {
			if slices.Contains(has, c) {
				t.Fatalf("the command has the capability that it asks for: %s", r.Stderr())
			}
		}
		has = append(has, lacks...)
	}
	t.Logf("enough: %d capabilities", len(has))
	for _, c := range has {
		without := slices.DeleteFunc(slices.Clone(has), func(x uintptr) bool { return x == c })
		if c != capabilities["CAP_SYS_PTRACE"] && slices.Contains(without, capabilities["CAP_SYS_ADMIN"]) {
			continue // CAP_SYS_ADMIN includes it
		}
		cmd, _ := unprivileged(t, without, "-p", fmt.Sprint(waiting(t, "alloc", "1", "1").PID))
		got := finish(t, cmd)
		if got.code != int(cli.Failed) || !slices.Equal(lacking(t, []byte(got.stderr)), []uintptr{c}) {
			t.Errorf("without capability %d: exit code %d\n%s", c, got.code, got.stderr)
		}
	}
}

// lacking returns the capabilities that a message of one line and a hint names.
func lacking(t *testing.T, message []byte) []uintptr {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(message)), "\n")
	_, list, ok := strings.Cut(lines[0], "missing privilege ")
	if !ok || len(lines) != 2 || !strings.HasPrefix(lines[1], "hint: run it as root") {
		t.Fatalf("want one line that names capabilities, and a hint:\n%s", message)
	}
	list, _, _ = strings.Cut(list, ":")
	var all []uintptr
	for name := range strings.SplitSeq(list, ", ") {
		c, known := capabilities[name]
		if !known {
			t.Fatalf("unknown capability %q in:\n%s", name, message)
		}
		all = append(all, c)
	}
	return all
}

// Root of a user namespace has every capability in it, and none that counts here.
func TestUserNamespace(t *testing.T) {
	child := waiting(t, "alloc", "1", "10")
	cmd := command(t, "-p", fmt.Sprint(child.PID))
	own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: own}
	refuses(t, cmd, "a user namespace gives no rights outside of it", "outside of the container")
	child.Go()
	child.Succeed()
}

// refuses runs a command that can trace nothing here, and checks its message of one line,
// followed by a hint if hint is not empty.
func refuses(t *testing.T, cmd *exec.Cmd, want, hint string) {
	t.Helper()
	cmd.Dir = t.TempDir()
	got := finish(t, cmd)
	line, rest, _ := strings.Cut(got.stderr, "\n")
	if got.code != int(cli.Failed) || !strings.Contains(line, want) || got.stdout != "" {
		t.Errorf("exit code %d, want %q:\n%s%s", got.code, want, got.stderr, got.stdout)
	}
	if hint == "" && rest != "" || hint != "" && (!strings.HasPrefix(rest, "hint: ") || !strings.Contains(rest, hint) || strings.Count(rest, "\n") != 1) {
		t.Errorf("after the first line %q, want a hint with %q", rest, hint)
	}
	if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// hiding is the environment variable with a folder that the command cannot see.
const hiding = "RTRACE_BPF_TEST_HIDE"

// hide mounts an empty folder over a folder. The caller has a mount namespace of its own.
func hide(folder string) {
	if folder == "" {
		return
	}
	if err := unix.Mount("none", folder, "tmpfs", unix.MS_RDONLY, ""); err != nil {
		fmt.Fprintf(os.Stderr, "hide %s: %v\n", folder, err)
		os.Exit(99)
	}
}

// TestKernelsBuiltWithoutSomething hides files that a kernel built without a feature does
// not have.
func TestKernelsBuiltWithoutSomething(t *testing.T) {
	for name, test := range map[string]struct {
		hidden string
		args   []string
		want   string
	}{
		"types":   {"/sys/kernel/btf", nil, "types of the kernel: not supported by this kernel: it needs CONFIG_DEBUG_INFO_BTF"},
		"uprobes": {"/sys/bus/event_source/devices", []string{"--mechanism", "perf"}, "uprobes as perf events: not supported by this kernel: it needs CONFIG_UPROBE_EVENTS"},
	} {
		t.Run(name, func(t *testing.T) {
			child := waiting(t, "alloc", "1", "10")
			cmd := command(t, append(test.args, "-p", fmt.Sprint(child.PID))...)
			cmd.Env = append(cmd.Env, hiding+"="+test.hidden)
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			refuses(t, cmd, test.want, "")
			child.Go()
			child.Succeed()
		})
	}
}

// A kernel that is locked down hides its memory from programs. A virtual machine is booted
// with such a kernel for this test (vmtest/README.md, "Cases").
func TestLockedDown(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Build(t, "alloc") // before the skip: the virtual machine has no compiler
	level := lockdown(t)
	if !strings.Contains(level, "[confidentiality]") {
		if testutil.VMCase() == "lockdown" {
			t.Fatalf("this kernel was to be booted with lockdown=confidentiality, and is at %q", level)
		}
		t.Skip("SKIPPED-KERNEL: this kernel is not locked down")
	}
	child := waiting(t, "alloc", "1", "10")
	for _, args := range [][]string{nil, {"--dry-run"}, {"--mechanism", "perf", "--state", "hash", "--sites", "address", "--bounded", "--buffer", "perf"}} {
		refuses(t, command(t, append(args, "-p", fmt.Sprint(child.PID))...), "the kernel is locked down (lockdown=confidentiality)", "a kernel is locked down at boot")
	}
	child.Go()
	child.Succeed()
}

// lockdown returns the kernel's lockdown levels, with the current one in brackets, or an
// empty string if they cannot be read.
func lockdown(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "securityfs", 0, ""); err != nil {
		t.Logf("cannot mount securityfs: %v", err)
		return ""
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	text, err := os.ReadFile(filepath.Join(dir, "lockdown"))
	if err != nil {
		t.Logf("cannot read whether the kernel is locked down: %v", err)
	}
	return string(text)
}
