package cover

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/tracer/site"
)

// library is an allocator's file.
type library struct {
	Image
	path    string
	exports map[string]uint64 // functions, by name
}

// neverReturn and returnFirst name functions of other libraries.
var (
	neverReturn = []string{
		"abort", "exit", "_exit", "__assert_fail", "__stack_chk_fail", "__chk_fail", "__fortify_fail",
		"_Unwind_Resume", "__cxa_throw", "__cxa_rethrow", "__cxa_call_terminate", "__cxa_call_unexpected",
		"_ZSt17__throw_bad_allocv", "_ZSt9terminatev", "longjmp",
	}
	returnFirst = []string{"memset", "memcpy", "memmove"}
)

func openLibrary(t testing.TB, path string) *library {
	t.Helper()
	l, err := readLibrary(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return l
}

func readLibrary(path string) (*library, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l := &library{path: path, exports: map[string]uint64{}}
	switch f.Machine {
	case elf.EM_X86_64:
		l.Arch = site.AMD64
	case elf.EM_AARCH64:
		l.Arch = site.ARM64
	default:
		return nil, fmt.Errorf("no paths of %v", f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			l.Base = p.Vaddr
			if l.Code, err = io.ReadAll(p.Open()); err != nil {
				return nil, err
			}
		}
	}
	if err := l.bounds(f); err != nil {
		return nil, err
	}
	return l, l.names(f)
}

// bounds reads the unwind tables.
func (l *library) bounds(f *elf.File) error {
	s := f.Section(".eh_frame")
	if s == nil {
		return nil
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	section := &cfi.Section{Order: f.ByteOrder, Data: data, Addr: s.Addr, EH: true, Machine: cfi.MachineOf(f.Machine)}
	index, err := cfi.NewIndex(section)
	if err != nil {
		return err
	}
	l.Bounds = func(addr uint64) (uint64, uint64, bool) {
		if fde, ok := index.Find(addr); ok {
			return fde.Start, fde.End, true
		}
		return 0, 0, false
	}
	return nil
}

// names reads the symbols and the relocations.
func (l *library) names(f *elf.File) error {
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return err
	}
	addrs := map[uint64]string{} // of functions
	for _, s := range symbols {
		if t := elf.ST_TYPE(s.Info); (t == elf.STT_FUNC || t == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF {
			if t == elf.STT_FUNC {
				l.exports[s.Name] = s.Value
			}
			if slices.Contains(neverReturn, s.Name) || slices.Contains(returnFirst, s.Name) || addrs[s.Value] == "" {
				addrs[s.Value] = s.Name
			}
		}
	}
	entered := map[uint64]bool{}
	for a := range addrs {
		entered[a] = true
	}
	slots := map[uint64]string{}  // names, by the address of the pointer
	locals := map[uint64]uint64{} // functions of the library, by the address of the pointer
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return err
		}
		for ; len(data) >= 24; data = data[24:] {
			at := binary.LittleEndian.Uint64(data)
			info := binary.LittleEndian.Uint64(data[8:])
			addend := binary.LittleEndian.Uint64(data[16:])
			if n := info >> 32; n != 0 && n <= uint64(len(symbols)) {
				slots[at] = symbols[n-1].Name
			} else if name := addrs[addend]; name != "" {
				slots[at] = name
				locals[at] = addend
			} else {
				entered[addend] = true
			}
		}
	}
	for _, a := range taken(l) {
		entered[a] = true
	}
	l.Entered = func(addr uint64) bool { return entered[addr] }
	l.Slot = func(addr uint64) (uint64, bool) {
		to, ok := locals[addr]
		if !ok {
			// A symbol of the library itself; these allocators' names are their own.
			to, ok = l.exports[slots[addr]]
		}
		return to, ok
	}
	l.Callee = func(addr uint64) (Callee, bool) {
		name := addrs[addr]
		slot, isStub := site.Stub(site.Options{Arch: l.Arch}, l.at(addr), addr)
		if isStub {
			name = slots[slot]
		}
		if i := strings.IndexByte(name, '@'); i >= 0 {
			name = name[:i]
		}
		c := Callee{NoReturn: slices.Contains(neverReturn, name), First: slices.Contains(returnFirst, name)}
		return c, isStub || c != Callee{}
	}
	return nil
}

// taken returns the addresses of code that the code computes relative to itself.
func taken(l *library) (all []uint64) {
	if l.Arch != site.AMD64 {
		return site.Selectable(site.Options{Arch: l.Arch}, l.Code, l.Base)
	}
	for i := 0; i+7 <= len(l.Code); i++ {
		// lea disp(%rip), reg
		if c := l.Code[i:]; c[0]&0xf8 == 0x48 && c[1] == 0x8d && c[2]&0xc7 == 0x05 {
			all = append(all, l.Base+uint64(i)+7+uint64(int64(int32(binary.LittleEndian.Uint32(c[3:])))))
		}
	}
	return all
}

// functions lists what is covered, with the arguments that an event needs.
var functions = []Function{
	{Name: "malloc", Args: []int{0}},
	{Name: "calloc", Args: []int{0, 1}, Factors: [2]int{0, 1}},
	{Name: "memalign", Args: []int{0, 1}},
	{Name: "aligned_alloc", Args: []int{0, 1}},
	{Name: "valloc", Args: []int{0}},
	{Name: "pvalloc", Args: []int{0}},
	{Name: "_Znwm", Args: []int{0}},
	{Name: "_Znam", Args: []int{0}},
	{Name: "_ZnwmRKSt9nothrow_t", Args: []int{0}},
	{Name: "_ZnwmSt11align_val_t", Args: []int{0, 1}},
}

// here are the allocators of this machine.
var here = []string{
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
	"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0",
	"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
	"/lib/ld-musl-x86_64.so.1",
}

// installed opens an allocator of this machine.
func installed(t *testing.T, path string) *library {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	return openLibrary(t, path)
}

// TestHotPaths demands one breakpoint and no return probe on the hot paths of the allocators of
// this machine.
func TestHotPaths(t *testing.T) {
	for i, names := range [][]string{{"malloc", "calloc"}, {"malloc"}, {"malloc"}} {
		t.Run(filepath.Base(here[i]), func(t *testing.T) {
			l := installed(t, here[i])
			for _, f := range functions {
				if !slices.Contains(names, f.Name) {
					continue
				}
				f.Entry = l.exports[f.Name]
				p, err := Find(&l.Image, f, UsualCosts)
				if err != nil {
					t.Error(err)
					continue
				}
				if p.HotTraps != 1 || p.HotReturns != 0 {
					t.Errorf("%s: %d breakpoints and %d returns", f.Name, p.HotTraps, p.HotReturns)
				}
				for _, s := range p.Sites {
					t.Logf("%s: %#x %s: %v when %v, arguments %+v, block %+v", f.Name, s.Addr, s.Insn, s.Role, s.When, s.Args, s.Block)
				}
			}
		})
	}
}
