package proc

import (
	"bufio"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noPID is above the highest process ID that Linux assigns (PID_MAX_LIMIT, 2^22).
const noPID = 1<<22 + 1

func TestOwnStatus(t *testing.T) {
	pid := os.Getpid()
	s, err := ReadStatus(pid)
	if err != nil {
		t.Fatal(err)
	}
	if s.TGID != pid || s.PID != pid || s.PPID != os.Getppid() || s.UID[0] != uint32(os.Getuid()) || s.Threads < 1 {
		t.Errorf("got %+v", s)
	}
	if n := len(s.NSPID); n == 0 || s.NSPID[0] != pid {
		t.Errorf("namespace ids %v, want the first to be %d", s.NSPID, pid)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	if s, err = ReadStatus(tid); err != nil || s.TGID != pid || s.PID != tid {
		t.Errorf("thread %d: got %+v, %v", tid, s, err)
	}
	threads, err := Threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for i, th := range threads {
		if i > 0 && threads[i-1].TID >= th.TID {
			t.Error("threads are not ordered by id")
		}
		found = found || th.TID == tid && th.Name == s.Name
	}
	if !found {
		t.Errorf("thread %d %q is not among %v", tid, s.Name, threads)
	}
}

func TestOwnProgram(t *testing.T) {
	pid := os.Getpid()
	want, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, deleted, err := Exe(pid); got != want || deleted || err != nil {
		t.Errorf("got %q, deleted %v, %v, want %q", got, deleted, err, want)
	}
	if args, err := Cmdline(pid); err != nil || strings.Join(args, "|") != strings.Join(os.Args, "|") {
		t.Errorf("got arguments %q, %v, want %q", args, err, os.Args)
	}
	if head, err := ProgramHead(pid); err != nil || head.Bits != int(8*unsafe.Sizeof(uintptr(0))) {
		t.Errorf("got %+v, %v", head, err)
	}
	if zombie, err := IsZombie(pid); zombie || err != nil {
		t.Errorf("zombie %v, %v", zombie, err)
	}
}

func TestOwnMaps(t *testing.T) {
	maps, err := Maps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	here := uint64(0)
	pc, _, _, _ := runtime.Caller(0)
	exe, _, _ := Exe(os.Getpid())
	names := map[string]bool{}
	for _, m := range maps {
		names[m.Path] = true
		if uint64(pc) < m.Start || uint64(pc) >= m.End {
			continue
		}
		here = m.Start
		if m.Path != exe || m.Perms&Exec == 0 || !m.File() {
			t.Errorf("code of the test is mapped as %+v", m)
		}
		if got, want := Path(os.Getpid(), m), "/proc/"; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "/root"+exe) {
			t.Errorf("path %q", got)
		}
	}
	if here == 0 || !names["[stack]"] {
		t.Errorf("no mapping of the test's code or no stack in %v", names)
	}
}

func TestNoProcess(t *testing.T) {
	for name, err := range map[string]error{
		"status":  second(ReadStatus(noPID)),
		"maps":    second(Maps(noPID)),
		"threads": second(Threads(noPID)),
		"kernel":  second(IsKernelThread(noPID)),
		"zombie":  second(IsZombie(noPID)),
		"cmdline": second(Cmdline(noPID)),
		"head":    second(ProgramHead(noPID)),
	} {
		if !errors.Is(err, ErrNoProcess) {
			t.Errorf("%s: error %v, want ErrNoProcess", name, err)
		}
	}
	if _, _, err := Exe(noPID); !errors.Is(err, ErrNoProcess) {
		t.Errorf("exe: error %v, want ErrNoProcess", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestKernelThread(t *testing.T) {
	const kthreadd = 2
	if name, err := os.ReadFile("/proc/2/comm"); err != nil || string(name) != "kthreadd\n" {
		t.Skip("SKIP: no kernel threads to be seen (a PID namespace?)")
	}
	if kernel, err := IsKernelThread(kthreadd); !kernel || err != nil {
		t.Errorf("got %v, %v", kernel, err)
	}
	if kernel, err := IsKernelThread(os.Getpid()); kernel || err != nil {
		t.Errorf("self: got %v, %v", kernel, err)
	}
	if os.Getuid() != 0 {
		t.Skip("SKIP: maps of kernel threads need root")
	}
	if maps, err := Maps(kthreadd); len(maps) != 0 || err != nil {
		t.Errorf("got %d mappings, %v", len(maps), err)
	}
	if _, _, err := Exe(kthreadd); !errors.Is(err, ErrNoProgram) {
		t.Errorf("exe: error %v, want ErrNoProgram", err)
	}
	if _, err := ProgramHead(kthreadd); !errors.Is(err, ErrNoProgram) {
		t.Errorf("head: error %v, want ErrNoProgram", err)
	}
}

func TestZombie(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if zombie, err := IsZombie(pid); !zombie || err != nil {
		t.Errorf("zombie %v, %v", zombie, err)
	}
	if maps, err := Maps(pid); len(maps) != 0 || err != nil {
		t.Errorf("%d mappings, %v", len(maps), err)
	}
	if _, _, err := Exe(pid); !errors.Is(err, ErrNoProgram) {
		t.Errorf("exe: error %v, want ErrNoProgram", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := IsZombie(pid); !errors.Is(err, ErrNoProcess) {
		t.Errorf("after wait: error %v, want ErrNoProcess", err)
	}
}

func TestGoneWhileRead(t *testing.T) {
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file(cmd.Process.Pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir, err := os.Open(file(cmd.Process.Pid, "task"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the kernel answers %v, want ESRCH: text relies on it", err)
	}
	if _, err := dir.Readdirnames(-1); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the kernel answers %v, want ENOENT or ESRCH: ThreadIDs relies on it", err)
	}
}

// endedLeader is a program whose main thread ends. The other one waits until the main thread is
// a zombie and then lives until its input ends.
const endedLeader = `#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void *other(void *arg) {
	char path[64], text[256];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
	for (;;) {
		FILE *f = fopen(path, "r");
		if (f && fgets(text, sizeof text, f) && strstr(text, ") Z ")) break;
		if (f) fclose(f);
		usleep(1000);
	}
	write(1, "ready\n", 6);
	while (read(0, text, 1) > 0) {}
	_exit(0);
}
int main(void) {
	pthread_t t;
	pthread_create(&t, 0, other, 0);
	pthread_exit(0);
}`

func TestEndedMainThread(t *testing.T) {
	dir := t.TempDir()
	prog := filepath.Join(dir, "ended leader")
	if err := os.WriteFile(prog+".c", []byte(endedLeader), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-o", prog, prog+".c", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	cmd := exec.Command(prog)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	pid := cmd.Process.Pid
	if s, err := ReadStatus(pid); err != nil || s.State != StateZombie || s.Threads != 2 {
		t.Errorf("got %+v, %v, want a zombie with 2 threads", s, err)
	}
	if zombie, err := IsZombie(pid); zombie || err != nil {
		t.Errorf("zombie %v, %v, want a living process", zombie, err)
	}
	if exe, _, err := Exe(pid); exe != prog || err != nil {
		t.Errorf("exe %q, %v, want %q", exe, err, prog)
	}
	if head, err := ProgramHead(pid); head.Bits == 0 || err != nil {
		t.Errorf("head %+v, %v", head, err)
	}
	maps, err := Maps(pid)
	if err != nil || len(maps) == 0 {
		t.Fatalf("%d mappings, %v", len(maps), err)
	}
	if maps[0].Path != prog {
		t.Fatalf("first mapping is %+v", maps[0])
	}
	checkSameFile(t, Path(pid, maps[0]), prog)
	if os.Getuid() == 0 {
		held, err := os.Open(prog)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if err := os.Remove(prog); err != nil {
			t.Fatal(err)
		}
		if maps, err = Maps(pid); err != nil || !maps[0].Deleted {
			t.Fatalf("%+v, %v, want a deleted file", maps[0], err)
		}
		checkSameFile(t, Path(pid, maps[0]), held.Name(), held)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// checkSameFile checks that path leads to the file want, or to the file of open if it has no
// name any more.
func checkSameFile(t *testing.T, path, want string, open ...*os.File) {
	t.Helper()
	got, err := os.Stat(path)
	if err != nil {
		t.Errorf("path %q: %v", path, err)
		return
	}
	info, err := os.Stat(want)
	if len(open) > 0 {
		info, err = open[0].Stat()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(got, info) {
		t.Errorf("path %q is not %s", path, want)
	}
}

// Reading the head of a pipe that a process names as its program takes nothing out of the pipe.
func TestHeadOfPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	want := elfHead(elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_X86_64)
	if _, err := pipe.Write(want); err != nil {
		t.Fatal(err)
	}
	if _, err := fileHead(path); !errors.Is(err, ErrSyntax) {
		t.Errorf("error %v, want ErrSyntax", err)
	}
	if left, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ); err != nil || left != len(want) {
		t.Errorf("%d bytes are left in the pipe, %v; want %d", left, err, len(want))
	}
}

// echo makes a program that copies its input do that once.
func echo(in io.Writer, out io.Reader) error {
	if _, err := in.Write([]byte{'x'}); err != nil {
		return err
	}
	_, err := io.ReadFull(out, make([]byte, 1))
	return err
}

// A dynamic program has an interpreter, which begins like an ELF file. An interpreter that is
// started by hand has none. Both agree with /proc/PID/maps.
func TestInterpreter(t *testing.T) {
	const loaders = "/lib*/ld-linux-*.so.*"
	found, err := filepath.Glob(loaders)
	if err != nil || len(found) == 0 {
		found, _ = filepath.Glob("/lib/ld-linux-*.so.*")
	}
	if len(found) == 0 {
		t.Fatalf("no dynamic loader is at %s", loaders)
	}
	for name, test := range map[string]struct {
		argv   []string
		loader bool
	}{"dynamic": {[]string{"/bin/cat"}, true}, "by hand": {[]string{found[0], "/bin/cat"}, false}} {
		cmd := exec.Command(test.argv[0], test.argv[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Start may return before the kernel has the program's auxiliary vector.
		if err := echo(in, out); err != nil {
			t.Fatal(err)
		}
		head, err := ProgramHead(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		base, err := Interpreter(cmd.Process.Pid, head.Bits/8)
		maps, e := Maps(cmd.Process.Pid)
		if err != nil || e != nil {
			t.Fatal(err, e)
		}
		path := ""
		for _, m := range maps {
			if m.Start == base {
				path = filepath.Base(m.Path)
			}
		}
		if got := strings.HasPrefix(path, "ld-"); got != test.loader || (base != 0) != test.loader {
			t.Errorf("%s: at %#x is %q", name, base, path)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
