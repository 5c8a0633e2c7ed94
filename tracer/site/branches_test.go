package site

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBranches(t *testing.T) {
	const base = 0x400000
	for _, c := range []struct {
		name    string
		arch    Arch
		code    string
		entries []uint64
		want    []Branch
	}{
		{
			name: "each kind", arch: AMD64,
			// nop; call base+0x100; jmp base+0x17f; jo base+0x100; jg base+0x102; jmp short
			code:    `90 e8 fa 00 00 00 e9 74 01 00 00 0f 80 ef 00 00 00 0f 8f eb 00 00 00 eb fe`,
			entries: []uint64{base + 0x100},
			want: []Branch{
				{From: base + 1, To: base + 0x100, Next: base + 6, Call: true},
				{From: base + 6, To: base + 0x17f, Next: base + 11},
				{From: base + 11, To: base + 0x100, Next: base + 17},
				{From: base + 17, To: base + 0x102, Next: base + 23},
			},
		},
		{
			name: "short, from the neighbours", arch: AMD64,
			// ret; mov $..., which contains eb 04; jmp +1 past the entry; nops;
			// entry: push; mov; ret; short jump to the mov
			code:    `c3 b8 eb 04 00 00 eb 03 90 90 55 48 89 f8 c3 eb fa`,
			entries: []uint64{base + 10},
			want: []Branch{
				{From: base + 6, To: base + 11, Next: base + 8},
				{From: base + 15, To: base + 11, Next: base + 17},
			},
		},
		{
			name: "border of the window", arch: AMD64,
			code:    `e9 7b 00 00 00 e9 75 00 00 00 e9 f1 ff ff ff`,
			entries: []uint64{base},
			// The first leads to base+0x80, the second to base+0x7f, the third to base.
			want: []Branch{
				{From: base + 5, To: base + 0x7f, Next: base + 10},
				{From: base + 10, To: base, Next: base + 15},
			},
		},
		{
			name: "several entries, unsorted", arch: AMD64,
			code:    `e8 fb 2f 00 00 e8 f6 0f 00 00 e8 f1 1f 00 00`,
			entries: []uint64{base + 0x3000, base + 0x1000},
			want: []Branch{
				{From: base, To: base + 0x3000, Next: base + 5, Call: true},
				{From: base + 5, To: base + 0x1000, Next: base + 10, Call: true},
			},
		},
		{
			name: "backwards, below the code", arch: AMD64,
			code:    `e8 fb ef ff ff`,
			entries: []uint64{base - 0x1000},
			want:    []Branch{{From: base, To: base - 0x1000, Next: base + 5, Call: true}},
		},
		{
			name: "32-bit code", arch: I386,
			// inc %eax; call base+0x100; push %ebx; jmp base+0x17f; je short
			code:    `40 e8 fa 00 00 00 53 e9 73 01 00 00 74 02`,
			entries: []uint64{base + 0x100},
			want: []Branch{
				{From: base + 1, To: base + 0x100, Next: base + 6, Call: true},
				{From: base + 7, To: base + 0x17f, Next: base + 12},
			},
		},
		{
			name: "32-bit code, short", arch: I386,
			// inc %eax; jmp into the window; entry: push; dec %eax; ret
			code:    `40 eb 01 55 48 c3`,
			entries: []uint64{base + 3},
			want:    []Branch{{From: base + 1, To: base + 4, Next: base + 3}},
		},
		{
			name: "32-bit code, around the end of the addresses", arch: I386,
			code:    `e8 fb 0f 00 f0`,
			entries: []uint64{0xf0401000},
			want:    []Branch{{From: base, To: 0xf0401000, Next: base + 5, Call: true}},
		},
		{name: "cut", arch: AMD64, code: `e8 00 00 00`, entries: []uint64{base}},
		{name: "cut long", arch: AMD64, code: `0f 80 00 00 00`, entries: []uint64{base}},
		{name: "no entries", arch: AMD64, code: `e8 fb ff ff ff`},
		{name: "no architecture", code: `e8 fb ff ff ff`, entries: []uint64{base}},
		{
			name: "arm64", arch: ARM64,
			// nop; bl +0x100; b +0xfc; cbz +0xfc; tbnz back to the start; bl elsewhere
			code:    `1f 20 03 d5 3f 00 00 94 3f 00 00 14 a0 07 00 b4 80 ff ff 37 00 10 00 94`,
			entries: []uint64{base + 0x100, base},
			want: []Branch{
				{From: base + 4, To: base + 0x100, Next: base + 8, Call: true},
				{From: base + 8, To: base + 0x104, Next: base + 12},
				{From: base + 12, To: base + 0x100, Next: base + 16},
				{From: base + 16, To: base, Next: base + 20},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Branches(c.arch, code(t, c.code), base, c.entries)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("branches (-want +got):\n%s", d)
			}
		})
	}
}

// TestBranchesUnaligned checks that arm64 instructions are found in code that does not start with
// one.
func TestBranchesUnaligned(t *testing.T) {
	b := append([]byte{0, 0}, code(t, `3f 00 00 94`)...)
	got := Branches(ARM64, b, 0x1002, []uint64{0x1100})
	want := []Branch{{From: 0x1004, To: 0x1100, Next: 0x1008, Call: true}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("branches (-want +got):\n%s", d)
	}
}

func TestInternalCallers(t *testing.T) {
	const base, target = 0x1000, 0x2000
	b := make([]byte, 0x1800)
	rel := func(at, opcode int) {
		b[at] = byte(opcode)
		binary.LittleEndian.PutUint32(b[at+1:], uint32(target-(base+at+5)))
	}
	rel(0x10, 0xe8)
	rel(0x21, 0xe9)
	rel(0x1501, 0xe8)
	// One byte after the target belongs to another function.
	rel(0x40, 0xe8)
	b[0x41]++
	returns, jumps := InternalCallers(AMD64, b, base, target)
	if d := cmp.Diff([]uint64{0x1015, 0x2506}, returns); d != "" {
		t.Errorf("returns (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]uint64{0x1021}, jumps); d != "" {
		t.Errorf("jumps (-want +got):\n%s", d)
	}

	a := make([]byte, 0x20)
	binary.LittleEndian.PutUint32(a[4:], 0x94000000|(target-(base+4))>>2)
	binary.LittleEndian.PutUint32(a[8:], 0x14000000|(target-(base+8))>>2)
	returns, jumps = InternalCallers(ARM64, a, base, target)
	if d := cmp.Diff([]uint64{0x1008}, returns); d != "" {
		t.Errorf("arm64 returns (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]uint64{0x1008}, jumps); d != "" {
		t.Errorf("arm64 jumps (-want +got):\n%s", d)
	}
	returns, jumps = InternalCallers(0, a, base, target)
	if returns != nil || jumps != nil {
		t.Errorf("without architecture: %x %x", returns, jumps)
	}
}

// BenchmarkBranches scans as much code as a C library has. Random bytes have about the same share
// of branch opcodes as code.
func BenchmarkBranches(b *testing.B) {
	text := make([]byte, 1<<20+1<<19)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	var entries []uint64
	for i := range 12 {
		entries = append(entries, 0x90000+uint64(i)*0x400)
	}
	for _, arch := range []Arch{AMD64, ARM64, I386} {
		b.Run(arch.String(), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Branches(arch, text, 0x20000, entries)
			}
		})
	}
}

func TestDirect(t *testing.T) {
	const base = 0x400000
	for _, c := range []struct {
		name string
		arch Arch
		code string
		want []Branch
	}{
		{
			// mov $..., which contains e8 00 00 00 00; call +0x10; je -2; jmp *%rax; jmp 0
			"amd64", AMD64, `48 b8 e8 00 00 00 00 00 00 00 e8 10 00 00 00 74 fc ff e0 e9 e8 ff ff ff`,
			[]Branch{
				{From: base + 10, To: base + 0x1f, Next: base + 15, Call: true},
				{From: base + 15, To: base + 13, Next: base + 17},
				{From: base + 19, To: base, Next: base + 24},
			},
		},
		{
			// an invalid byte; call +1
			"amd64, not all decoded", AMD64, `06 e8 01 00 00 00`,
			[]Branch{{From: base + 1, To: base + 7, Next: base + 6, Call: true}},
		},
		{
			// inc %eax; mov $..., which contains e8; call +0x10; jecxz -2; jmp *%eax
			"32-bit", I386, `40 b8 e8 00 00 00 e8 10 00 00 00 e3 fc ff e0`,
			[]Branch{
				{From: base + 6, To: base + 0x1b, Next: base + 11, Call: true},
				{From: base + 11, To: base + 9, Next: base + 13},
			},
		},
		{
			// bl +8; nop; b.eq -4; blr x0
			"arm64", ARM64, `02 00 00 94 1f 20 03 d5 e0 ff ff 54 00 00 3f d6`,
			[]Branch{
				{From: base, To: base + 8, Next: base + 4, Call: true},
				{From: base + 8, To: base + 4, Next: base + 12},
			},
		},
		{"unknown machine", 0, `90`, nil},
	} {
		if diff := cmp.Diff(c.want, Direct(c.arch, code(t, c.code), base)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}
