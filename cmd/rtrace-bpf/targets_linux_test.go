package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// refused runs the command on a process that cannot be traced, and checks its message.
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
		t.Errorf("left: %v, %v", left, err)
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
	// WNOWAIT waits for the end and leaves the zombie in place.
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	refused(t, pid, "is a zombie")
	if out, errOut, code := ran(t, "explain", "-p", fmt.Sprint(pid)); code != cli.Failed || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "(true) is a zombie: it has ended, and has no memory of its own") {
		t.Errorf("explain: exit code %d\n%s%s", code, out, errOut)
	}
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

// rtrace returns the path of the command rtrace.
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
	cmd.Stdin = read // the program waits for a trace
	child := testutil.Start(t, cmd)
	refused(t, child.PID, "has no known allocator: it is a Go program, whose memory comes from Go's own runtime\nhint: use Go's own profiler, pprof: ")
}

// A static program without calls of free contains no free if its C library is musl. Its
// allocations are traced, with a note.
func TestStaticProgramWithoutFree(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "freeless", testutil.Musl, "-static"))
	child.Ready()
	r := start(t, child)
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	r.says(" is static and has malloc but no free: its allocations are traced, and nothing that it allocates is ever freed\n")
	r.says("10 events: 10 allocations, 0 frees")
	r.says("live at the end: 10 blocks")
}

// TestForeignPrograms checks programs that cannot be traced, written byte by byte so that
// no compilers for them are needed.
func TestForeignPrograms(t *testing.T) {
	testutil.NeedBPF(t)
	for name, test := range map[string]struct {
		class   elf.Class
		machine elf.Machine
		want    string
	}{
		"x32":   {elf.ELFCLASS32, elf.EM_X86_64, "cannot be traced here: it is an x32 program"},
		"arm32": {elf.ELFCLASS32, elf.EM_ARM, "cannot be traced here: it is a 32-bit program for ARM"},
	} {
		t.Run(name, func(t *testing.T) {
			child := testutil.StartWaiter(t, testutil.Waiter(t, test.class, test.machine))
			refused(t, child.PID, test.want)
		})
	}
}

// A 32-bit program without a C library is refused like a 64-bit one.
func TestStatic32BitProgram(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Need32Bit(t)
	child := testutil.Spawn(t, testutil.Waiter(t, elf.ELFCLASS32, elf.EM_386))
	refused(t, child.PID, "has no known allocator")
}

// The process of a program under an emulator is the emulator.
func TestEmulatedProgram(t *testing.T) {
	testutil.NeedBPF(t)
	class, machine := elf.ELFCLASS64, elf.EM_AARCH64
	emulator := "qemu-aarch64"
	if runtime.GOARCH == "arm64" {
		class, machine, emulator = elf.ELFCLASS32, elf.EM_386, "qemu-i386"
	}
	testutil.Extra(t, "qemu-user")
	path, err := exec.LookPath(emulator)
	if err != nil {
		t.Skipf("SKIPPED: %s is not installed (package qemu-user): %v", emulator, err)
	}
	child := testutil.Start(t, exec.Command(path, testutil.Waiter(t, class, machine)))
	refused(t, child.PID, "runs in an emulator, "+path)
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
	// The test binary may be in a folder that the user nobody cannot read.
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

// execAs returns a command that runs the program at path under another name.
func execAs(path, name string, args ...string) *exec.Cmd {
	return &exec.Cmd{Path: path, Args: append([]string{name}, args...)}
}
