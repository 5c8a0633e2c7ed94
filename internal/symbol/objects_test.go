package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"testing"
)

// Variables are found in all tables of all kinds of files, even if functions have the same
// names.
func TestObjects(t *testing.T) {
	for _, wide := range []bool{false, true} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			f := forge{
				wide: wide, order: order, typ: elf.ET_DYN, machine: elf.EM_X86_64,
				symtab: []forged{
					{name: "state", addr: codeAddr, size: 16, info: global | fn},
					{name: "state_of", addr: 0x10, size: 1, info: local | object},
					{name: "state", addr: 0x20, size: 2200, info: local | object},
					{name: "state", addr: 0x30, size: 1, info: local | object},
				},
				dynsym: []forged{{name: "seen", addr: 0x40, size: 8, info: global | object}},
			}
			data := f.build()
			file, err := New(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			const want = "map[seen:{64 8} state:{32 2200}]"
			if got := fmt.Sprint(file.Objects("state", "seen", "missing", "stat")); got != want {
				t.Errorf("wide %v, %v: %s, want %s", wide, order, got, want)
			}
			// A truncated file causes no worse than a missing variable.
			for n := range data {
				if file, err := New(bytes.NewReader(data[:n]), int64(n)); err == nil {
					file.Objects("state")
				}
			}
		}
	}
}
