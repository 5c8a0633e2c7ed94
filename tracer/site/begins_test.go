package site_test

import (
	"testing"

	"rtrace-bpf/tracer/site"
)

// Begins knows the boundaries of instructions, and none after an unknown instruction.
func TestBegins(t *testing.T) {
	// push %rbp; mov %rsp,%rbp; sub $0x10,%rsp; call +0; ret; an invalid one; nop
	code := []byte{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xe8, 0, 0, 0, 0, 0xc3, 0x06, 0x90}
	begins := map[uint64]bool{0: true, 1: true, 4: true, 8: true, 13: true, 14: true}
	const base = 0x1000
	for offset := range uint64(len(code) + 2) {
		if got := site.Begins(site.AMD64, code, base, base+offset); got != begins[offset] {
			t.Errorf("offset %d: %v", offset, got)
		}
	}
	if site.Begins(site.AMD64, code, base, base-1) {
		t.Error("before the code")
	}
	arm := []byte{0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91} // stp x29, x30, [sp, #-16]!; mov x29, sp
	for offset := range uint64(8) {
		if got := site.Begins(site.ARM64, arm, base, base+offset); got != (offset%4 == 0) {
			t.Errorf("arm64, offset %d: %v", offset, got)
		}
	}
}

// Keeps reports false for an instruction that the kernel would take for another one, that it
// refuses, or that is unknown.
func TestKeeps(t *testing.T) {
	for text, want := range map[string]bool{
		"\x55":                     true,  // push %rbp
		"\xf3\x0f\x1e\xfa":         true,  // endbr64
		"\x48\x89\xf8":             true,  // mov %rdi,%rax
		"\xc4\xe2\x7d\x78\xc0":     false, // vpbroadcastb %xmm0,%ymm0
		"\x62\xe2\x7d\x48\x7a\xc6": false, // vpbroadcastb %esi,%zmm16: glibc's memset for AVX-512
		"\xc5\xf8\x77":             false, // vzeroupper
		"\xc5\xf9\x6e\xc6":         false, // vmovd %esi,%xmm0, whose opcode is outs
		"\xf0\x48\x0f\xb1\x0f":     false, // lock cmpxchg %rcx,(%rdi)
		"\x06":                     false, // none
		"":                         false,
	} {
		if got := site.Keeps(site.AMD64, []byte(text), 0x1000); got != want {
			t.Errorf("% x: %v", text, got)
		}
	}
	if !site.Keeps(site.ARM64, []byte{0xfd, 0x7b, 0xbf, 0xa9}, 0x1000) { // stp x29, x30, [sp, #-16]!
		t.Error("arm64: a store cannot have a probe")
	}
}
