package site

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// libc is a C library of this machine, as read by debug/elf and objdump.
type libc struct {
	arch      Arch
	text      []byte // its executable segment
	base      uint64
	symbols   []elf.Symbol // functions, by all names, ascending
	functions []elf.Symbol // one per address, ascending
	insns     []line       // of the whole disassembly, ascending
	jumps     map[uint64][]uint64
}

// errNoLibc reports why there is nothing to compare with.
var errNoLibc = errors.New("SKIPPED")

// forLibcs runs a test for the C library of each architecture.
func forLibcs(t *testing.T, test func(t *testing.T, l *libc)) {
	for _, arch := range []Arch{AMD64, I386} {
		t.Run(arch.String(), func(t *testing.T) { test(t, openLibc(t, arch)) })
	}
}

func openLibc(t *testing.T, arch Arch) *libc {
	t.Helper()
	read := readLibc64
	if arch == I386 {
		read = readLibc32
	}
	l, err := read()
	switch {
	case errors.Is(err, errNoLibc):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return l
}

// Each library is read once for all tests.
var (
	readLibc64 = sync.OnceValues(func() (*libc, error) {
		return readLibc(AMD64, elf.EM_X86_64,
			"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6")
	})
	readLibc32 = sync.OnceValues(func() (*libc, error) {
		return readLibc(I386, elf.EM_386,
			"/lib32/libc.so.6", "/lib/i386-linux-gnu/libc.so.6", "/usr/lib32/libc.so.6")
	})
)

func readLibc(arch Arch, machine elf.Machine, paths ...string) (*libc, error) {
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		return nil, fmt.Errorf("%w: no objdump to compare with (install binutils)", errNoLibc)
	}
	var path string
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return nil, fmt.Errorf("%w: no libc.so.6 of %v on this machine (libc6-i386 has the one of 386)", errNoLibc, arch)
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Machine != machine {
		return nil, fmt.Errorf("%w: %s is for %v", errNoLibc, path, f.Machine)
	}
	l := &libc{arch: arch}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			l.base = p.Vaddr
			if l.text, err = io.ReadAll(p.Open()); err != nil {
				return nil, err
			}
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	end := l.base + uint64(len(l.text))
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 && s.Value >= l.base && s.Value+s.Size <= end {
			l.symbols = append(l.symbols, s)
		}
	}
	slices.SortFunc(l.symbols, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	l.functions = slices.CompactFunc(slices.Clone(l.symbols), func(a, b elf.Symbol) bool { return a.Value == b.Value })
	out, err := exec.Command(objdump, "-d", "-w", "--no-show-raw-insn", path).Output()
	if err != nil {
		return nil, fmt.Errorf("objdump: %w", err)
	}
	l.insns = parseObjdump(out)
	if len(l.functions) < 500 || len(l.insns) < 100_000 {
		return nil, fmt.Errorf("%d functions and %d instructions in %s are too few", len(l.functions), len(l.insns), path)
	}
	l.jumps = map[uint64][]uint64{}
	for _, x := range l.insns {
		if to, ok := x.target(); ok {
			l.jumps[to] = append(l.jumps[to], x.addr)
		}
	}
	return l, nil
}

// body returns the instructions of a function.
func (l *libc) body(s elf.Symbol) []line {
	at := func(addr uint64) int {
		i, _ := slices.BinarySearchFunc(l.insns, addr, func(x line, a uint64) int { return cmp.Compare(x.addr, a) })
		return i
	}
	return l.insns[at(s.Value):at(s.Value+s.Size)]
}

func (l *libc) function(s elf.Symbol) Function {
	return Function{Name: s.Name, Entry: s.Value, Code: l.text[s.Value-l.base:][:s.Size]}
}

// TestLibcSites compares the sites of every exported function of the C library with those of a
// model, which knows only objdump's text.
func TestLibcSites(t *testing.T) { forLibcs(t, testLibcSites) }

func testLibcSites(t *testing.T, l *libc) {
	var entries []uint64
	for _, s := range l.functions {
		entries = append(entries, s.Value)
	}
	incoming := Branches(l.arch, l.text, l.base, entries)
	for _, v := range []struct {
		name string
		f    Function
	}{
		{"return probe of two arguments", Function{Args: []int{0, 1}, Return: true}},
		{"entry probe", Function{Args: []int{0}}},
		{"null skipped", Function{Args: []int{0}, SkipNull: true}},
	} {
		t.Run(v.name, func(t *testing.T) {
			compared, cheap, misread := 0, 0, 0
			for _, s := range l.functions {
				f := l.function(s)
				f.Args, f.Return, f.SkipNull, f.Incoming = v.f.Args, v.f.Return, v.f.SkipNull, incoming
				got, err := Choose(Options{Arch: l.arch}, f)
				if err != nil {
					if !errors.Is(err, ErrNoSite) {
						t.Errorf("%s: %v", s.Name, err)
					}
					continue
				}
				want, ok := newModel(l.arch, l.body(s), l.jumps, &f).choose()
				if !ok {
					continue
				}
				compared++
				if got.Cost == Emulated {
					cheap++
				}
				if got.Offset == want.offset && got.StackAdjust == want.depth && got.SkipsNull == want.nonNull && want.holds(got.Args) {
					continue
				}
				if l.misread(got) {
					misread++
					continue
				}
				t.Errorf("%s: got +%d %q adjust %d null %v %+v, want %+v", s.Name,
					got.Offset, got.Insn, got.StackAdjust, got.SkipsNull, got.Args, want)
				for _, c := range got.Candidates {
					t.Logf("+%d %v %s: %s", c.Offset, c.Cost, c.Insn, c.Verdict)
				}
			}
			t.Logf("%d of %d functions compared, %d with an emulated site, %d lost to a misread branch",
				compared, len(l.functions), cheap, misread)
			if compared*10 < len(l.functions)*9 {
				t.Errorf("only %d of %d functions could be compared", compared, len(l.functions))
			}
			if misread*100 > compared {
				t.Errorf("%d of %d sites lost to misread branches", misread, compared)
			}
		})
	}
}

// TestLibcPaths compares what is known before each of the first instructions of a function, not
// only of the chosen one: the places of the first arguments and the distance of the stack
// pointer.
func TestLibcPaths(t *testing.T) { forLibcs(t, testLibcPaths) }

func testLibcPaths(t *testing.T, l *libc) {
	m, _ := machineOf(Options{Arch: l.arch})
	steps, moved := 0, 0
	for _, s := range l.functions {
		f := l.function(s)
		f.Args, f.SkipNull = []int{0, 1, 2}, true
		seen := newModel(l.arch, l.body(s), l.jumps, &f).path()
		for _, st := range walk(m, &f).steps {
			want, ok := seen[st.offset]
			if !ok {
				break // the model stopped earlier
			}
			steps++
			for _, a := range f.Args {
				for place := range NoReg {
					got := st.state.regs[place] == value{kind: argument, a: uint8(a)} && m.readable()&(1<<place) != 0
					if got != want.holders[a][place] {
						t.Errorf("%s+%d: argument %d in place %d: %v, want %v", s.Name, st.offset, a, place, got, !got)
					}
					if got && place != int(m.arguments()[a]) {
						moved++
					}
				}
			}
			if st.state.stack != want.depth || st.state.frame != want.frame || st.state.nonNull != want.nonNull {
				t.Errorf("%s+%d: stack %d frame %v null %v, want %+v", s.Name, st.offset,
					st.state.stack, st.state.frame, st.state.nonNull, want)
			}
		}
	}
	t.Logf("%d instructions compared, with %d copies of arguments", steps, moved)
	if steps < 4*len(l.functions) || moved < steps/10 {
		t.Errorf("%d instructions and %d copies are too few for %d functions", steps, moved, len(l.functions))
	}
}

// misread reports whether a candidate was rejected because of a branch that does not exist.
// Branches looks at every byte, and here at the windows of all functions.
func (l *libc) misread(s Site) bool {
	for _, c := range s.Candidates {
		from, to, ok := branchIn(c.Verdict)
		if ok && !slices.Contains(l.jumps[s.Addr-uint64(s.Offset)+uint64(to)], from) {
			return true
		}
	}
	return false
}

// TestLibcText checks that each instruction of the library's functions has the length that
// objdump prints, if it is decoded at all.
func TestLibcText(t *testing.T) { forLibcs(t, testLibcText) }

func testLibcText(t *testing.T, l *libc) {
	m, _ := machineOf(Options{Arch: l.arch})
	known := 0
	for i, x := range l.insns[:len(l.insns)-1] {
		if x.addr < l.base || x.addr >= l.base+uint64(len(l.text)) || x.bad() {
			continue
		}
		in := m.decode(l.text[x.addr-l.base:], x.addr)
		if in.size == 0 {
			continue
		}
		known++
		// The zeros between sections are not disassembled.
		rest := l.text[x.addr-l.base:]
		rest = rest[:min(l.insns[i+1].addr-x.addr, uint64(len(rest)))]
		if n := len(rest); in.size != n && (in.size > n || len(bytes.Trim(rest[in.size:], "\x00")) > 0) {
			t.Errorf("%#x %s %v: size %d, want %d", x.addr, x.mnemonic, x.operands, in.size, n)
		}
		to, direct := x.target()
		if direct != in.direct || direct && to != in.target {
			t.Errorf("%#x %s %v: target %v %#x", x.addr, x.mnemonic, x.operands, in.direct, in.target)
		}
	}
	if known*10 < len(l.insns)*9 {
		t.Errorf("only %d of %d instructions decoded", known, len(l.insns))
	}
}

// TestLibcInternalCallers compares the callers of free with objdump's.
func TestLibcInternalCallers(t *testing.T) { forLibcs(t, testLibcInternalCallers) }

func testLibcInternalCallers(t *testing.T, l *libc) {
	for _, s := range l.functions {
		if s.Name != "free" && s.Name != "malloc" && s.Name != "abort" {
			continue
		}
		var returns, jumps []uint64
		for i, x := range l.insns {
			if to, ok := x.target(); ok && to == s.Value {
				if x.mnemonic == "call" || x.mnemonic == "callq" {
					returns = append(returns, l.insns[i+1].addr)
				} else {
					jumps = append(jumps, x.addr)
				}
			}
		}
		gotReturns, gotJumps := InternalCallers(l.arch, l.text, l.base, s.Value)
		if !slices.Equal(gotReturns, returns) || !slices.Equal(gotJumps, jumps) {
			t.Errorf("%s: returns %x jumps %x, want %x %x", s.Name, gotReturns, gotJumps, returns, jumps)
		}
	}
}

// TestLibcDirect compares the direct branches of each function with objdump's.
func TestLibcDirect(t *testing.T) { forLibcs(t, testLibcDirect) }

func testLibcDirect(t *testing.T, l *libc) {
	for _, s := range l.functions {
		got := map[uint64]uint64{}
		for _, b := range Direct(l.arch, l.function(s).Code, s.Value) {
			got[b.From] = b.To
		}
		for _, x := range l.body(s) {
			to, ok := x.target()
			if ok && got[x.addr] != to {
				t.Errorf("%s: no branch at %#x to %#x", s.Name, x.addr, to)
			}
			delete(got, x.addr)
		}
		if len(got) != 0 {
			t.Errorf("%s: branches that objdump has not: %#x", s.Name, got)
		}
	}
}
