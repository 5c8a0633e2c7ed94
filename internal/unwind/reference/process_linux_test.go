//go:build amd64 || arm64

package reference

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/unwind"
	"rtrace-bpf/internal/unwind/cfi"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// build compiles a program of this package's testdata, without frame pointers.
func build(t testing.TB, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "prog")
	args := append([]string{"-std=gnu++17", "-O2", "-fomit-frame-pointer", "-pthread", "-Wall", "-Wextra", "-o", out, filepath.Join("testdata", source)}, flags...)
	if text, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, text)
	}
	return out
}

// process is a process with access to its memory and tables.
type process struct {
	t       testing.TB
	pid     int
	mem     *os.File
	space   *Space
	indexes map[string]*cfi.Index // by path
	tables  map[*cfi.Index]*unwind.Table
	missed  map[uint64]bool // pages that had no mapping at the last look
}

func open(t testing.TB, pid int) *process {
	t.Helper()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mem.Close() })
	p := &process{t: t, pid: pid, mem: mem, indexes: map[string]*cfi.Index{}, tables: map[*cfi.Index]*unwind.Table{}, missed: map[uint64]bool{}}
	p.refresh()
	return p
}

// Word reads the memory of the process as it is now.
func (p *process) Word(addr uint64) (uint64, bool) {
	var b [8]byte
	if addr > 1<<63-8 {
		return 0, false
	}
	if _, err := p.mem.ReadAt(b[:], int64(addr)); err != nil {
		return 0, false
	}
	return binary.NativeEndian.Uint64(b[:]), true
}

// Find reads the mappings again if nothing is known at pc.
func (p *process) Find(pc uint64) (Module, bool) {
	m, ok := p.space.Find(pc)
	if page := pc >> 12; !ok && !p.missed[page] {
		p.refresh()
		m, ok = p.space.Find(pc)
		p.missed[page] = !ok
	}
	return m, ok
}

func (p *process) refresh() {
	p.t.Helper()
	maps, err := proc.Maps(p.pid)
	if err != nil {
		p.t.Fatal(err)
	}
	var all []Mapping
	for _, m := range maps {
		if m.Perms&proc.Exec != 0 {
			all = append(all, Mapping{m.Start, m.End, p.module(&m)})
		}
	}
	if p.space, err = NewSpace(all); err != nil {
		p.t.Fatal(err)
	}
}

// module reads the tables of the file that m maps, or of the vDSO.
func (p *process) module(m *proc.Map) Module {
	p.t.Helper()
	var file *symbol.File
	var err error
	switch {
	case m.Path == "[vdso]":
		image := make([]byte, m.End-m.Start)
		if _, err := p.mem.ReadAt(image, int64(m.Start)); err != nil {
			p.t.Fatalf("vDSO: %v", err)
		}
		file, err = symbol.New(bytes.NewReader(image), int64(len(image)))
	case m.File():
		file, err = symbol.Open(m.Path)
	default:
		return Module{}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	defer file.Close()
	addr, ok := file.Addr(m.Offset)
	if !ok {
		p.t.Fatalf("%s: nothing is loaded from offset %#x", m.Path, m.Offset)
	}
	if p.indexes[m.Path] == nil {
		sections, err := cfi.Sections(file)
		if err != nil {
			p.t.Fatal(err)
		}
		index, err := cfi.NewIndex(sections...)
		if err != nil {
			p.t.Fatal(err)
		}
		p.indexes[m.Path] = index
		if p.tables[index], err = unwind.Build(file); err != nil && !errors.Is(err, unwind.ErrNoFrames) {
			p.t.Fatal(err)
		}
	}
	return Module{Index: p.indexes[m.Path], Bias: m.Start - addr}
}

// name returns an address with its file and function.
func (p *process) name(pc uint64) string {
	maps, err := proc.Maps(p.pid)
	if err != nil {
		return err.Error()
	}
	for _, m := range maps {
		if pc < m.Start || pc >= m.End {
			continue
		}
		text := fmt.Sprintf("%#x %s", pc, m.Path)
		file, err := symbol.Open(m.Path)
		if err != nil {
			return text
		}
		defer file.Close()
		addr, _ := file.Addr(pc - m.Start + m.Offset)
		function, _ := file.Lookup(addr)
		return fmt.Sprintf("%s %#x %s+%#x", text, addr, function.Name, addr-function.Addr)
	}
	return fmt.Sprintf("%#x", pc)
}

// waits reports whether the thread is waiting in a system call with these registers.
func waits(t testing.TB, pid, tid int, m *machine, regs Registers) bool {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasSuffix(string(text), fmt.Sprintf(" %#x %#x\n", regs.R[m.sp], regs.R[m.pc]))
}

// registers returns the registers of a thread that is stopped by ptrace.
func registers(t testing.TB, tid int, machine elf.Machine) Registers {
	t.Helper()
	var p unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &p); err != nil {
		t.Fatal(err)
	}
	var r Registers
	for n, v := range inDWARFOrder(&p, machine) {
		r.Set(uint64(n), v)
	}
	return r
}

// target is a kind of program that can run on this machine.
type target struct {
	name    string
	machine elf.Machine
	flags   []string // for the compiler
}

// targets returns all kinds, starting with the machine's own.
func targets() []target {
	if runtime.GOARCH == "arm64" {
		return []target{{machine: elf.EM_AARCH64}}
	}
	return []target{{machine: elf.EM_X86_64}, {name: "i386/", machine: elf.EM_386, flags: []string{"-m32"}}}
}

// need skips the test if such programs cannot run.
func (t *target) need(tb testing.TB) {
	tb.Helper()
	if t.machine == elf.EM_386 {
		testutil.Need32Bit(tb)
	}
}

// options returns the options for a stopped thread.
func (t *target) options() Options {
	return Options{Machine: t.machine, Depth: 512, Interrupted: true}
}

// native returns the options for programs of the machine's own kind.
func native() Options { return targets()[0].options() }
