package record

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/process"
)

// Limits for finding the length of a text, in bytes.
const (
	textPiece = 4 << 10
	maxLength = 64 << 20
)

// texts finds texts in the memory of a process.
type texts struct {
	pid      int32
	mappings *mappings
}

// length returns the number of characters, of unit bytes each, of the text at addr in
// the process. If the process's memory cannot be read, it looks in the files that the
// process had mapped, which contain constant texts.
func (t texts) length(addr uint64, unit int) (uint64, bool) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.pid))
	if err == nil {
		defer memory.Close()
		if length, ok := lengthIn(memory, int64(addr), unit); ok {
			return length, true
		}
	}
	// Constants are mapped before or after the code of their file.
	all := t.mappings.current
	i, _ := slices.BinarySearchFunc(all, addr, func(m process.Mapping, addr uint64) int {
		if m.Start <= addr {
			return -1
		}
		return 1
	})
	for _, m := range all[max(i-1, 0):min(i+1, len(all))] {
		if length, ok := lengthAt(&m, addr, unit); ok {
			return length, true
		}
	}
	return 0, false
}

// lengthAt is texts.length for a constant in a mapping's file.
func lengthAt(m *process.Mapping, addr uint64, unit int) (uint64, bool) {
	file, err := os.Open(m.Path)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || m.Inode == 0 || info.Sys().(*syscall.Stat_t).Ino != m.Inode {
		return 0, false
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return 0, false
	}
	var code []symbol.Segment
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			code = append(code, symbol.Segment{Offset: p.Off, Addr: p.Vaddr, FileSize: p.Filesz, MemSize: p.Memsz})
		}
	}
	at := addr - m.Bias(code)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W == 0 && at >= p.Vaddr && at-p.Vaddr < p.Filesz {
			return lengthIn(file, int64(at-p.Vaddr+p.Off), unit)
		}
	}
	return 0, false
}

// lengthIn returns the number of characters of the text that begins at offset from.
func lengthIn(r io.ReaderAt, from int64, unit int) (uint64, bool) {
	piece, zero := make([]byte, textPiece), make([]byte, unit)
	for at := from; at-from < maxLength; {
		// Read page by page: the page after the text may not exist.
		n, err := r.ReadAt(piece[:textPiece-at%textPiece], at)
		for i := 0; i+unit <= n; i += unit {
			if bytes.Equal(piece[i:i+unit], zero) {
				return uint64(at-from+int64(i)) / uint64(unit), true
			}
		}
		if n -= n % unit; err != nil || n == 0 {
			return 0, false
		}
		at += int64(n)
	}
	return 0, false
}
