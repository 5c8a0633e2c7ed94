package cover

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// process is a program of testdata/calls.c under ptrace.
type process struct {
	pid     int
	memory  *os.File
	symbols map[string]uint64
	base    uint64 // where the library is
	stopped map[int]bool
}

// callsDir is the folder of the compiled program.
var callsDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if callsDir != "" {
		os.RemoveAll(callsDir)
	}
	os.Exit(code)
}

// compileCalls compiles testdata/calls.c for old and new libraries.
var compileCalls = sync.OnceValues(func() (string, error) {
	var err error
	if callsDir, err = os.MkdirTemp("", "cover"); err != nil {
		return "", err
	}
	program := filepath.Join(callsDir, "calls")
	out, err := exec.Command("gcc", "-O1", "-no-pie", "-fno-builtin", "-fno-stack-protector", "-nostartfiles", "-DOLD",
		"-o", program, "testdata/calls.c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return program, nil
})

// command describes how a program is run with an allocator.
type command struct {
	program string   // testdata/calls.c, compiled
	prefix  []string // the loader and its options
	env     []string
	library string // the allocator's file
}

// start runs the program up to the first breakpoint of its own. The calling goroutine must stay on
// its thread.
func start(t *testing.T, c command, args ...string) *process {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	all := append(append(append([]string{}, c.prefix...), c.program), args...)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{pid: cmd.Process.Pid, stopped: map[int]bool{}}
	t.Cleanup(func() {
		_ = unix.Kill(p.pid, unix.SIGKILL) // it may have ended
		for {
			if _, _, err := p.wait(); err != nil {
				return
			}
		}
	})
	if _, status, err := p.wait(); err != nil || status.StopSignal() != unix.SIGTRAP {
		t.Fatalf("after exec: %v %v", status, err)
	}
	if err := unix.PtraceSetOptions(p.pid, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatal(err)
	}
	if err := unix.PtraceCont(p.pid, 0); err != nil {
		t.Fatal(err)
	}
	if _, status, err := p.wait(); err != nil || status.StopSignal() != unix.SIGTRAP {
		t.Fatalf("before the first call: %v %v", status, err)
	}
	if err := p.open(c); err != nil {
		t.Fatal(err)
	}
	return p
}

// wait waits for a thread of the process.
func (p *process) wait() (int, unix.WaitStatus, error) {
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return tid, status, err
	}
}

func (p *process) open(c command) error {
	proc := filepath.Join("/proc", strconv.Itoa(p.pid))
	var err error
	if p.memory, err = os.OpenFile(filepath.Join(proc, "mem"), os.O_RDWR, 0); err != nil {
		return err
	}
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return err
	}
	want, err := filepath.EvalSymlinks(c.library)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		w := strings.Fields(line)
		if len(w) == 6 && w[5] == want {
			from, _, _ := strings.Cut(w[0], "-")
			if p.base, err = strconv.ParseUint(from, 16, 64); err != nil {
				return err
			}
			break
		}
	}
	if p.base == 0 {
		return fmt.Errorf("%s is not mapped", want)
	}
	f, err := elf.Open(c.program)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return err
	}
	p.symbols = map[string]uint64{}
	for _, s := range symbols {
		p.symbols[s.Name] = s.Value
	}
	return nil
}

func (p *process) word(addr uint64) (uint64, error) {
	var b [8]byte
	_, err := p.memory.ReadAt(b[:], int64(addr))
	return binary.LittleEndian.Uint64(b[:]), err
}

// breakpoint puts a breakpoint at addr and returns the code that was there.
func (p *process) breakpoint(addr uint64) ([]byte, error) {
	code := make([]byte, 16)
	if _, err := p.memory.ReadAt(code, int64(addr)); err != nil {
		return nil, err
	}
	_, err := p.memory.WriteAt([]byte{0xcc}, int64(addr))
	return code, err
}

// value reads a place.
func (p *process) value(r *unix.PtraceRegs, at Place) (uint64, error) {
	if at.Stack {
		return p.word(r.Rsp + uint64(int64(at.Offset)))
	}
	return *registerX86Of(r, at.Reg), nil
}
