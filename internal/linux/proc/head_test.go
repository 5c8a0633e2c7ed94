package proc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"
)

// elfHead returns the first bytes of an ELF file.
func elfHead(class elf.Class, data elf.Data, machine elf.Machine) []byte {
	b := append([]byte(elf.ELFMAG), byte(class), byte(data), 1)
	b = append(b, make([]byte, HeadSize-len(b)-2)...)
	if data == elf.ELFDATA2MSB {
		return binary.BigEndian.AppendUint16(b, uint16(machine))
	}
	return binary.LittleEndian.AppendUint16(b, uint16(machine))
}

func TestParseHead(t *testing.T) {
	for _, tt := range []struct {
		head []byte
		want Head
	}{
		{elfHead(elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_X86_64), Head{64, elf.EM_X86_64}},
		{elfHead(elf.ELFCLASS32, elf.ELFDATA2LSB, elf.EM_386), Head{32, elf.EM_386}},
		{elfHead(elf.ELFCLASS32, elf.ELFDATA2MSB, elf.EM_ARM), Head{32, elf.EM_ARM}},
	} {
		if got, err := ParseHead(tt.head); got != tt.want || err != nil {
			t.Errorf("%q: got %+v, %v, want %+v", tt.head, got, err, tt.want)
		}
	}
	whole := elfHead(elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_X86_64)
	for _, bad := range [][]byte{
		nil, whole[:HeadSize-1], bytes.Repeat([]byte("#!/bin/sh "), 2),
		elfHead(0, elf.ELFDATA2LSB, elf.EM_386), elfHead(3, elf.ELFDATA2LSB, elf.EM_386), elfHead(elf.ELFCLASS32, 0, elf.EM_386),
	} {
		if _, err := ParseHead(bad); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: error %v, want ErrSyntax", bad, err)
		}
	}
}

func TestAuxiliary(t *testing.T) {
	var wide, narrow []byte
	for _, v := range []uint64{6, 4096, atExecFile, 0x7ffc1234, 0, 0} {
		wide = binary.NativeEndian.AppendUint64(wide, v)
		narrow = binary.NativeEndian.AppendUint32(narrow, uint32(v))
	}
	for word, auxv := range map[int][]byte{8: wide, 4: narrow} {
		if at, ok := auxiliary(auxv, word, atExecFile); !ok || at != 0x7ffc1234 {
			t.Errorf("words of %d bytes: got %#x, %v", word, at, ok)
		}
		if _, ok := auxiliary(auxv[:len(auxv)-1], word, 99); ok {
			t.Error("found what is not there")
		}
	}
}
