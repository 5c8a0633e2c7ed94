package tracer

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/internal/proc"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/modules"
)

// relocations by which the dynamic loader stores what an IFUNC has selected.
var indirect = map[elf.Machine]uint32{elf.EM_X86_64: uint32(elf.R_X86_64_IRELATIVE), elf.EM_AARCH64: uint32(elf.R_AARCH64_IRELATIVE)}

// selected returns what the C library has selected in a process: functions by the
// addresses of their IFUNCs, in the file.
func selected(t *testing.T, pid int, m proc.Map, path string) map[uint64]uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	bias := m.Start // the library's first address is 0
	all := map[uint64]uint64{}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA {
			continue
		}
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		for ; len(data) >= 24; data = data[24:] {
			if uint32(binary.LittleEndian.Uint64(data[8:])) != indirect[f.Machine] {
				continue
			}
			var slot [8]byte
			if _, err := memory.ReadAt(slot[:], int64(bias+binary.LittleEndian.Uint64(data))); err != nil {
				t.Fatal(err)
			}
			all[binary.LittleEndian.Uint64(data[16:])] = binary.LittleEndian.Uint64(slot[:]) - bias
		}
	}
	return all
}

// Of each function of memtransfer that the C library selects by the processor, the one
// that it has selected in a process is among those that are found in its code.
func TestSelectable(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "1")
	child.Ready()
	maps, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(maps, func(m proc.Map) bool { return filepath.Base(m.Path) == "libc.so.6" })
	if i < 0 {
		t.Fatal("the program has no libc.so.6")
	}
	made := selected(t, child.PID, maps[i], maps[i].Path)
	f, err := symbol.Open(maps[i].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head, err := proc.ProgramHead(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := machineOf(head)
	if err != nil {
		t.Fatal(err)
	}
	c := &code{lib: &library{file: f}, machine: machine}
	transfers, err := modules.Select([]string{"memtransfer"})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, fn := range modules.Functions(transfers, false) {
		sym, ok := f.Exported(fn.Symbol)
		if !ok || made[sym.Addr] == 0 {
			continue
		}
		compared++
		if all := c.selectable(sym); !slices.ContainsFunc(all, func(s symbol.Symbol) bool { return s.Addr == made[sym.Addr] }) {
			t.Errorf("%s: %#x is selected; found are %v", fn.Symbol, made[sym.Addr], all)
		}
	}
	if compared < 3 {
		t.Errorf("%d functions are compared", compared)
	}
}
