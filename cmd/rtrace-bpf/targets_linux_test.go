package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// refused runs the command on a process that cannot be traced.
func refused(t *testing.T, pid int, want string) {
	t.Helper()
	dir := t.TempDir()
	cmd := command(t, "-p", fmt.Sprint(pid), "-o", dir)
	got := finish(t, cmd)
	if got.code != int(cli.Failed) {
		t.Errorf("exit code %d, want 1", got.code)
	}
	if !strings.Contains(got.stderr, want) {
		t.Errorf("standard error %q, want %q in it", got.stderr, want)
	}
	lines := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
	if len(lines) > 2 || (len(lines) == 2 && !strings.HasPrefix(lines[1], "hint: ")) {
		t.Errorf("more than one line and a hint:\n%s", got.stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNoSuchProcess(t *testing.T) {
	child := testutil.Start(t, exec.Command("true"))
	child.Wait()
	refused(t, child.PID, "no such process")
}

func TestKernelThread(t *testing.T) {
	const kthreadd = 2
	if name, err := os.ReadFile("/proc/2/comm"); err != nil || string(name) != "kthreadd\n" {
		t.Skipf("SKIPPED: no kernel threads to be seen here: %q, %v", name, err)
	}
	refused(t, kthreadd, "process 2 (kthreadd) is a kernel thread")
}

func TestZombie(t *testing.T) {
	var attr syscall.ProcAttr
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &attr)
	if err != nil {
		t.Fatal(err)
	}
	// WNOWAIT waits for the end and leaves the zombie.
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	refused(t, pid, "is a zombie")
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
}

func TestThreadIsNoProcess(t *testing.T) {
	child := waiting(t, "loop", "1")
	tids, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", child.PID))
	if err != nil || len(tids) != 2 {
		t.Fatalf("threads %v, %v", tids, err)
	}
	tid, err := strconv.Atoi(tids[1].Name())
	if err != nil {
		t.Fatal(err)
	}
	refused(t, tid, fmt.Sprintf("%d is a thread of process %d", tid, child.PID))
}

// rtrace builds the other command.
func rtrace(t *testing.T) string {
	t.Helper()
	return testutil.BuildCommand(t, "rtrace-bpf/cmd/rtrace")
}

// A static Go program has no C library.
func TestNoAllocator(t *testing.T) {
	testutil.NeedBPF(t)
	path := rtrace(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	cmd := exec.Command(path, "info", "-")
	cmd.Stdin = read // it waits for a trace
	child := testutil.Start(t, cmd)
	refused(t, child.PID, "has no known allocator")
}

// A 32-bit program, made by hand so that no 32-bit compiler is needed: an ELF
// header, one segment, and code that calls pause().
func Test32BitProgram(t *testing.T) {
	testutil.NeedBPF(t)
	const base, head = 0x8048000, 52 + 32
	code := []byte{0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7} // mov $29,%eax; int $0x80; jmp back
	le := binary.LittleEndian
	b := make([]byte, head, head+len(code))
	copy(b, "\x7fELF\x01\x01\x01")
	for _, f := range []struct {
		at    int
		value uint32
		size  int
	}{
		{16, 2, 2},
		{18, 3, 2},
		{20, 1, 4},
		{24, base + head, 4},
		{28, 52, 4},
		{40, 52, 2},
		{42, 32, 2},
		{44, 1, 2},
		{52, 1, 4},
		{60, base, 4},
		{64, base, 4},
		{68, uint32(head + len(code)), 4},
		{72, uint32(head + len(code)), 4},
		{76, 5, 4},
		{80, 4096, 4},
	} {
		if f.size == 2 {
			le.PutUint16(b[f.at:], uint16(f.value))
		} else {
			le.PutUint32(b[f.at:], f.value)
		}
	}
	path := filepath.Join(t.TempDir(), "pause32")
	if err := os.WriteFile(path, append(b, code...), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	if err := cmd.Start(); err != nil {
		t.Skipf("SKIPPED: this kernel runs no 32-bit programs: %v", err)
	}
	defer func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
	}()
	refused(t, cmd.Process.Pid, "is a 32-bit program")
}

func TestNotPrivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, to become nobody")
	}
	const nobody = 65534
	credential := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	target := exec.Command("/bin/sleep", "1000")
	target.SysProcAttr = credential
	child := testutil.Start(t, target)
	// The test binary may be where nobody cannot get at it.
	exe := filepath.Join("/tmp", fmt.Sprintf("rtrace-bpf-test-%d", os.Getpid()))
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, self, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(exe)
	cmd := command(t, "-p", fmt.Sprint(child.PID))
	cmd.Path, cmd.Dir, cmd.SysProcAttr = exe, "/", credential
	got := finish(t, cmd)
	if got.code != int(cli.Failed) || !strings.Contains(got.stderr, "missing privilege CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE") ||
		!strings.Contains(got.stderr, "hint: run it as root: sudo rtrace-bpf -p") {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
}
