package process

import (
	"testing"

	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/object"
)

// The registers of 32-bit programs are the low halves of the 64-bit ones, with the DWARF
// numbers of the System V ABI (Intel386 supplement, table 2.14).
func TestRegistersI386(t *testing.T) {
	raw := &object.ProbeRawStack{Sp: 0xf_ffff0010, Pc: 0xf_08040012}
	r := &raw.Regs
	r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rbp, r.Rsi, r.Rdi = 0xf_00000001, 2, 3, 4, 0xf_00000006, 7, 8
	var want reference.Registers
	for number, value := range []uint64{1, 2, 3, 4, 0xffff0010, 6, 7, 8, 0x08040012} {
		want.Set(uint64(number), value)
	}
	if got := registersI386(raw); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
