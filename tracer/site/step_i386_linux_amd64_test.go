package site

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
)

// stepper runs a 32-bit program instruction by instruction and compares the state before each
// instruction of each call with the result of walk.
type stepper struct {
	t         *testing.T
	pid       int
	memory    *os.File
	functions map[uint64]*path // by the address of their entry
	names     map[uint64]string
	call      *followed // nil outside of what walk knows
	checked   map[string]int
}

// followed is a call up to its first branch.
type followed struct {
	entry  uint64
	steps  []step
	sp, bp uint32
	words  [8]uint32
}

// TestStepPlaces runs functions that were compiled in many ways, and the functions of the C
// library that they call.
func TestStepPlaces(t *testing.T) {
	testutil.Need32Bit(t)
	total, ran := map[string]int{}, 0
	all := []string{
		"-O0", "-O0 -fPIC", "-O1", "-O2", "-O3 -msse2", "-Os", "-O2 -fPIC -pie", "-O2 -fPIC -fno-plt",
		"-O2 -fcf-protection", "-O0 -fcf-protection -fstack-protector-all", "-O2 -fno-omit-frame-pointer",
		"-O1 -mstackrealign", "-O2 -mno-accumulate-outgoing-args", "-O2 -maccumulate-outgoing-args", "-Og -march=i386",
	}
	for _, flags := range all {
		t.Run(flags, func(t *testing.T) {
			source, err := os.ReadFile("testdata/places.c")
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-fno-builtin", "-no-pie", "-Wl,-z,now"}, strings.Fields(flags)...)
			s := startSteps(t, compile32(t, string(source), args...))
			s.run()
			ran++
			for what, n := range s.checked {
				total[what] += n
			}
			if s.checked["calls"] < 50 || s.checked["arguments"] < 1000 {
				t.Errorf("too little was compared: %v", s.checked)
			}
		})
	}
	t.Logf("compared: %v", total)
	for _, what := range []string{"copies", "products", "addresses", "lost", "not null"} {
		if ran == len(all) && total[what] < 20 {
			t.Errorf("only %d %s were compared", total[what], what)
		}
	}
}

// startSteps runs a program up to the breakpoint in main.
func startSteps(t *testing.T, program string) *stepper {
	t.Helper()
	runtime.LockOSThread() // ptrace is per thread
	t.Cleanup(runtime.UnlockOSThread)
	cmd := exec.Command(program)
	cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (32-bit programs need libc6-i386)", err)
	}
	s := &stepper{t: t, pid: cmd.Process.Pid, functions: map[uint64]*path{}, names: map[uint64]string{}, checked: map[string]int{}}
	t.Cleanup(func() {
		_ = unix.Kill(s.pid, unix.SIGKILL) // it may have ended
		for s.wait() != 0 {
		}
	})
	if sig := s.wait(); sig != unix.SIGTRAP {
		t.Fatalf("%v after exec", sig)
	}
	if err := unix.PtraceCont(s.pid, 0); err != nil {
		t.Fatal(err)
	}
	if sig := s.wait(); sig != unix.SIGTRAP {
		t.Fatalf("%v before the breakpoint in main", sig)
	}
	proc := filepath.Join("/proc", strconv.Itoa(s.pid))
	var err error
	if s.memory, err = os.Open(filepath.Join(proc, "mem")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.memory.Close() })
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(maps)) {
		w := strings.Fields(line)
		if len(w) != 6 || seen[w[5]] || w[5] != program && !strings.Contains(w[5], "/libc.so.6") {
			continue
		}
		seen[w[5]] = true
		start, _, _ := strings.Cut(w[0], "-")
		base, err := strconv.ParseUint(start, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		s.add(w[5], base)
	}
	if len(seen) != 2 {
		t.Fatalf("mappings of the program and the C library: %v", seen)
	}
	return s
}

// add walks the functions of a file whose first mapping is at base.
func (s *stepper) add(file string, base uint64) {
	s.t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if f.Type == elf.ET_EXEC {
		base = 0
	}
	symbols, err := f.Symbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		symbols, err = f.DynamicSymbols()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	m, _ := machineOf(Options{Arch: I386})
	for _, sym := range symbols {
		if elf.ST_TYPE(sym.Info) != elf.STT_FUNC || sym.Size == 0 || sym.Section == elf.SHN_UNDEF {
			continue
		}
		code := make([]byte, sym.Size)
		if _, err := s.memory.ReadAt(code, int64(base+sym.Value)); err != nil {
			s.t.Fatalf("%s of %s at %#x: %v", sym.Name, file, base+sym.Value, err)
		}
		w := walk(m, &Function{
			Entry: base + sym.Value, Code: code, Args: []int{0, 1}, Factors: [2]int{0, 1}, SkipNull: true,
		})
		s.functions[base+sym.Value], s.names[base+sym.Value] = w, sym.Name
	}
}

// wait returns the signal of the next stop, or 0 at the end.
func (s *stepper) wait() unix.Signal {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(s.pid, &status, unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			return 0
		}
		return status.StopSignal()
	}
}

// run steps to the second breakpoint in main.
func (s *stepper) run() {
	const most = 1_000_000
	for range most {
		r := s.registers()
		s.look(&r)
		var opcode [1]byte
		if _, err := s.memory.ReadAt(opcode[:], int64(r.ip)); err != nil {
			s.t.Fatal(err)
		}
		if opcode[0] == 0xcc {
			return
		}
		if err := unix.PtraceSingleStep(s.pid); err != nil {
			s.t.Fatal(err)
		}
		if sig := s.wait(); sig != unix.SIGTRAP {
			s.t.Fatalf("%v at %#x", sig, r.ip)
		}
	}
	s.t.Fatalf("not at the end after %d instructions", most)
}

// registers has the registers of struct user_regs_struct of a 32-bit kernel, in its order.
type registers struct {
	bx, cx, dx, si, di, bp, ax         uint32
	ds, es, fs, gs, origAX, ip, cs, fl uint32
	sp, ss                             uint32
}

// registers requests NT_PRSTATUS, which the kernel provides in the form of the traced program.
func (s *stepper) registers() registers {
	var r registers
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&r))}
	iov.SetLen(int(unsafe.Sizeof(r)))
	const prstatus = 1
	if _, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(s.pid), prstatus,
		uintptr(unsafe.Pointer(&iov)), 0, 0); err != 0 {
		s.t.Fatal(err)
	}
	return r
}

// look compares the state if walk knows something about this place.
func (s *stepper) look(r *registers) {
	if w := s.functions[uint64(r.ip)]; w != nil && len(w.steps) > 0 {
		s.call = &followed{entry: uint64(r.ip), steps: w.steps, sp: r.sp, bp: r.bp}
		copy(s.call.words[:], s.words(s.call.sp+4))
		s.checked["calls"]++
	}
	c := s.call
	if c == nil {
		return
	}
	if len(c.steps) == 0 || uint64(r.ip) != c.entry+uint64(c.steps[0].offset) {
		s.call = nil
		return
	}
	s.compare(c, &c.steps[0], r)
	c.steps = c.steps[1:]
}

func (s *stepper) words(at uint32) []uint32 {
	b := make([]byte, 32)
	if _, err := s.memory.ReadAt(b, int64(at)); err != nil {
		s.t.Fatal(err)
	}
	var all []uint32
	for ; len(b) > 0; b = b[4:] {
		all = append(all, binary.LittleEndian.Uint32(b))
	}
	return all
}

// compare compares the state of st with the registers and the stack.
func (s *stepper) compare(c *followed, st *step, r *registers) {
	places := [NoReg]uint32{r.ax, r.cx, r.dx, r.bx, r.sp, r.bp, r.si, r.di}
	copy(places[StackWord:], s.words(c.sp+4))
	wrong := func(what string, got, want uint32) {
		s.t.Errorf("%s+%d: %s is %#x, want %#x", s.names[c.entry], st.offset, what, got, want)
	}
	if sp := c.sp - uint32(st.state.stack); sp != r.sp {
		wrong("stack pointer", r.sp, sp)
	}
	if !st.state.frame && c.bp != r.bp {
		wrong("frame pointer", r.bp, c.bp)
	}
	if st.state.nonNull {
		s.checked["not null"]++
		if c.words[0] == 0 {
			wrong("first argument, found not to be null,", 0, 1)
		}
	}
	for i, v := range st.state.regs[:NoReg] {
		var want uint32
		switch v.kind {
		case argument:
			want = c.words[v.a]
			s.checked["arguments"]++
			if i != StackWord+int(v.a) {
				s.checked["copies"]++
			}
		case product:
			want = c.words[v.a] * c.words[v.b]
			s.checked["products"]++
		case stackAddress:
			want = c.sp + uint32(v.offset)
			if i != rsp {
				s.checked["addresses"]++
			}
		default:
			if i >= StackWord && i < StackWord+8 {
				s.checked["lost"]++
			}
			continue
		}
		if got := places[i]; got != want {
			wrong("place "+strconv.Itoa(i), got, want)
		}
	}
}
