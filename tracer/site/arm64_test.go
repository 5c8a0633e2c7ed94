package site

import (
	"encoding/binary"
	"testing"
)

// Functions of real arm64 libraries, from Debian 12, truncated after their first branches, and
// functions made for a rule. They were not run, because no arm64 machine was available.
var choicesARM64 = []choiceTest{
	{
		name: "glibc malloc",
		code: `fd 7b bc a9 fd 03 00 91 f7 63 03 a9 b7 08 00 90 e1 62 24 91 f5 5b 02 a9 f5 03 00 aa
			20 40 40 39 f3 53 01 a9 80 08 00 34`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Cost: SingleStep, Insn: "stp x29, x30, [sp,#-64]!", Args: regs(0)},
	},
	{
		name: "glibc, after the call of sbrk",
		code: `1f 04 00 b1 60 00 00 54 fd 7b c1 a8 c0 03 5f d6`,
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "b.eq 0x1010", Args: regs(0)},
	},
	{
		name: "glibc, after the call of mprotect",
		code: `e7 3b 40 f9 c0 f3 ff 35 76 32 40 f9`,
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "cbnz w0, 0xe7c", Args: regs(0)},
	},
	{
		name: "glibc free, null seen",
		code: `80 08 00 b4 fd 7b bc a9 fd 03 00 91 f5 5b 02 a9 b5 08 00 90`,
		f:    Function{Args: []int{0}},
		want: Site{Cost: Emulated, Insn: "cbz x0, 0x1110", Args: regs(0)},
	},
	{
		name: "glibc free, null skipped: the frame pointer weighs more",
		code: `80 08 00 b4 fd 7b bc a9 fd 03 00 91 f5 5b 02 a9 b5 08 00 90`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Cost: Emulated, Insn: "cbz x0, 0x1110", Args: regs(0)},
	},
	{
		name: "glibc reallocarray",
		code: `23 7c c2 9b 21 7c 02 9b 43 00 00 b5 11 4b fe 17 41 08 00 f0 c0 03 5f d6`,
		f: Function{
			Args: []int{0, 1, 2}, Factors: [2]int{1, 2}, Return: true,
			Target: func(addr uint64) (string, bool) { return "realloc", addr == 0xfffffffffff93c50 },
		},
		want: Site{
			Cost: SingleStep, Insn: "umulh x3, x1, x2", Args: regs(0, 1, 2),
			TailCalls: []string{"realloc"},
		},
	},
	{
		name: "glibc memalign",
		code: `fd 7b bd a9 82 08 00 f0 fd 03 00 91 f3 0b 00 f9 f3 03 00 aa 40 a0 64 39 a0 00 00 34`,
		f:    Function{Args: []int{0, 1}, Return: true},
		want: Site{
			Cost: SingleStep, Insn: "stp x29, x30, [sp,#-48]!", Args: regs(0, 1),
			Candidates: []Candidate{
				{0, SingleStep, "stp x29, x30, [sp,#-48]!", "chosen"},
				{4, Emulated, "adrp x2, 0x114000", "stack pointer has moved by 48, return probe impossible"},
				{8, SingleStep, "mov x29, sp", "stack pointer has moved by 48, return probe impossible"},
				{12, SingleStep, "str x19, [sp,#16]", "stack pointer has moved by 48, return probe impossible"},
				{16, SingleStep, "mov x19, x0", "stack pointer has moved by 48, return probe impossible"},
				{20, SingleStep, "ldrb w0, [x2,#2344]", "stack pointer has moved by 48, return probe impossible"},
				{24, Emulated, "cbz w0, 0x102c", "stack pointer has moved by 48, return probe impossible"},
			},
		},
	},
	{
		name: "jemalloc malloc",
		code: `1f 04 40 f1 88 04 00 54 01 1c 00 91`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "b.hi 0x1094", Args: regs(0)},
	},
	{
		name: "jemalloc free",
		code: `01 04 00 f0 21 70 46 f9 42 d0 3b d5`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Cost: Emulated, Insn: "adrp x1, 0x84000", Args: regs(0)},
	},
	{
		name: "signed return address, entry probe",
		code: `3f 23 03 d5 80 00 00 b4`, // paciasp; cbz x0
		f:    Function{Args: []int{0}},
		want: Site{
			Cost: SingleStep, Insn: "paciasp", Args: regs(0),
			Candidates: []Candidate{
				{0, SingleStep, "paciasp", "chosen"},
				{4, Emulated, "cbz x0, 0x1014", "link register has changed"},
			},
		},
	},
	{
		name: "landing pad first",
		code: `5f 24 03 d5 80 00 00 b4`, // bti c; cbz x0
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "cbz x0, 0x1014", Args: regs(0)},
	},
	{
		name: "link register copied, return probe",
		code: `f3 03 1e aa 80 00 00 b4`, // mov x19, x30; cbz x0
		f:    Function{Args: []int{0}, Return: true},
		want: Site{
			Cost: SingleStep, Insn: "mov x19, x30", Args: regs(0),
			Candidates: []Candidate{
				{0, SingleStep, "mov x19, x30", "chosen"},
				{4, Emulated, "cbz x0, 0x1014", "return address may have been saved already, return probe impossible"},
			},
		},
	},
	{
		name: "link register stored, entry probe",
		code: `fe 0f 1f f8 80 00 00 b4`, // str x30, [sp, #-16]!; cbz x0
		f:    Function{Args: []int{0}},
		want: Site{Offset: 4, Cost: Emulated, Insn: "cbz x0, 0x1014", Args: regs(0), StackAdjust: 16},
	},
	{
		name: "after the null check",
		code: `80 08 00 b4 02 00 00 d0 c0 03 5f d6`, // cbz x0; adrp x2; ret
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "adrp x2, 0x3000", Args: regs(0), SkipsNull: true},
	},
	{
		name: "after the null check by flags",
		code: `1f 00 00 f1 80 08 00 54 02 00 00 d0`, // cmp x0, #0; b.eq; adrp x2
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 8, Cost: Emulated, Insn: "adrp x2, 0x3000", Args: regs(0), SkipsNull: true},
	},
	{
		name: "after the null check by tst",
		code: `1f 00 00 ea 80 08 00 54 02 00 00 d0`, // tst x0, x0
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 8, Cost: Emulated, Insn: "adrp x2, 0x3000", Args: regs(0), SkipsNull: true},
	},
	{
		name: "null check of 32 bits",
		code: `80 08 00 34 02 00 00 d0`, // cbz w0
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Cost: Emulated, Insn: "cbz w0, 0x1110", Args: regs(0)},
	},
	{
		name: "argument moved",
		code: `e2 03 00 aa e0 03 01 aa 00 04 00 91 80 00 00 b4`, // mov x2, x0; mov x0, x1; add x0, x0, #1; cbz
		f:    Function{Args: []int{0, 1}, Return: true},
		want: Site{Offset: 12, Cost: Emulated, Insn: "cbz x0, 0x101c", Args: regs(2, 1)},
	},
	{
		name: "post-index load changes its base",
		code: `01 84 40 f8 80 00 00 b4`, // ldr x1, [x0], #8; cbz x0
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "ldr x1, [x0],#8", Args: regs(0)},
	},
	{
		name: "store keeps its registers",
		code: `20 00 00 f9 80 00 00 b4`, // str x0, [x1]; cbz x0
		f:    Function{Args: []int{0, 1}, Return: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "cbz x0, 0x1014", Args: regs(0, 1)},
	},
	{
		name: "pair load",
		code: `61 80 40 a9 80 00 00 b4`, // ldp x1, x0, [x3, #8]; cbz x0
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "ldp x1, x0, [x3,#8]", Args: regs(0)},
	},
	{
		name: "stack pointer computed",
		code: `1f 60 20 cb ff 63 20 cb 80 00 00 b4`, // sub sp, x0, x0; sub sp, sp, x0; cbz
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "sub sp, x0, x0", Args: regs(0)},
	},
	{
		name: "large frame",
		code: `ff 07 40 d1 80 00 00 b4`, // sub sp, sp, #1, lsl #12; cbz
		f:    Function{Args: []int{0}},
		want: Site{Offset: 4, Cost: Emulated, Insn: "cbz x0, 0x1014", Args: regs(0), StackAdjust: 4096},
	},
	{
		name: "literal first",
		code: `01 00 00 58 80 00 00 b4`, // ldr x1, literal; cbz x0
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "cbz x0, 0x1014", Args: regs(0)},
	},
	{
		name: "branch into the window",
		code: `21 00 00 8b 80 00 00 b4 ff ff ff 17`, // add x1, x1, x0; cbz x0; b back to cbz
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Cost: SingleStep, Insn: "add x1, x1, x0", Args: regs(0)},
	},
	{
		name: "thunk",
		code: `5f 24 03 d5 10 00 00 14`, // bti c; b
		f:    Function{Args: []int{0}, Return: true},
		want: Site{
			Offset: 4, Cost: Emulated, Insn: "b 0x1044", Args: regs(0),
			Thunk: &Thunk{Target: 0x1044},
		},
	},
	{
		name: "call",
		code: `e1 03 00 aa 10 00 00 94`, // mov x1, x0; bl
		f:    Function{Args: []int{0}},
		want: Site{Offset: 4, Cost: Emulated, Insn: "bl 0x1044", Args: regs(0)},
	},
	{
		name: "unknown to the printer",
		code: `00 00 00 00`, // udf #0
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: ".inst 0x00000000", Args: regs(0)},
	},
}

func TestChooseARM64(t *testing.T) {
	for _, c := range choicesARM64 {
		t.Run(c.name, func(t *testing.T) { c.run(t, ARM64) })
	}
}

// TestBranchARM64 checks the limits of the ranges of displacements.
func TestBranchARM64(t *testing.T) {
	const pc = 1 << 32
	for _, c := range []struct {
		word   uint32
		kind   kind
		target uint64
	}{
		{0x15ffffff, jump, pc + 1<<27 - 4},
		{0x16000000, jump, pc - 1<<27},
		{0x97ffffff, call, pc - 4},
		{0x547fffe0, cond, pc + 1<<20 - 4},
		{0x54800000, cond, pc - 1<<20},
		{0xb57fffe0, cond, pc + 1<<20 - 4},
		{0x3603ffe0, cond, pc + 1<<15 - 4},
		{0xb7fc0000, cond, pc - 1<<15},
	} {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], c.word)
		kind, target, ok := arm64{}.branchAt(b[:], pc)
		if !ok || kind != c.kind || target != c.target {
			t.Errorf("%#x: kind %d target %#x %v, want %d %#x", c.word, kind, target, ok, c.kind, c.target)
		}
	}
}
