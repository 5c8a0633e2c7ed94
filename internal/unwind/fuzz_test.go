package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"rtrace-bpf/internal/symbol"
)

// FuzzBuild builds tables from anything that can be read as an ELF file.
func FuzzBuild(f *testing.F) {
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64, elf.EM_386} {
		for _, bare := range []bool{false, true} {
			m := newMade(machine)
			m.bare = bare
			copy(m.code[0x80:], movRAX)
			copy(m.code[0xa0:], movX8)
			copy(m.code[0xc0:], mov173)
			copy(m.code[0xe0:], mov119)
			m.function(0x40, 0x60, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x0a, 0x41, 0x0d, 29, 0x41, 0x0b)
			m.function(0x10, 0x30, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x4a, 0xc6, 0x0c, 7, 8)
			m.function(0x50, 0x58, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0)
			m.function(0xf0, 0x100, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22)
			m.function(0x100, 0x110, 0x0f, 11, 0x74, 4, 0x78, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x32, 0x24, 0x22)
			m.function(0x110, 0x120, 0x0f, 3, 0x75, 0x7c, 0x06, 0x10, 5, 2, 0x75, 0)
			m.signalFunction(0x7f, 0x89)
			f.Add(m.bytes())
		}
	}
	big := &made{machine: elf.EM_AARCH64, order: binary.BigEndian}
	big.entry(0, commonARM64...)
	big.function(0x10, 0x40, 0x41, 0x0e, 32)
	f.Add(big.bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := symbol.New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		table, err := Build(file)
		if err != nil {
			if !syntax(err) && !errors.Is(err, ErrNoFrames) {
				t.Fatalf("error %v is no *trace.SyntaxError", err)
			}
			return
		}
		if err := invalid(table); err != nil {
			t.Fatal(err)
		}
		if len(table.Rows) > len(data)+maxRestorers*2+1 || table.Functions > len(data)/12 {
			t.Fatalf("%d rows of %d functions from %d bytes", len(table.Rows), table.Functions, len(data))
		}
		for _, r := range table.Rows {
			addr := table.Base + uint64(r.PC)
			if got := table.Find(addr); got != table.Rules[r.Rule] {
				t.Fatalf("Find(%#x) = %v, the row has %v", addr, got, table.Rules[r.Rule])
			}
			if rule := table.Rules[r.Rule]; rule.Kind() != Unsupported && rule.Kind() != None {
				if frame := rule.Frame(table.Word); frame.Pack(table.Word) != rule {
					t.Fatalf("rule %#x packs as %#x", uint64(rule), uint64(frame.Pack(table.Word)))
				}
			}
		}
	})
}
