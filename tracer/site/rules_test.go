package site

import "testing"

// Each rule for x86-64, with a function that is made for it.
var rules = []choiceTest{
	{
		name: "landing pad first",
		code: `f3 0f 1e fa 53 48 89 fb`, // endbr64; push %rbx
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "push %rbx", Args: regs(7)},
	},
	{
		name: "no cheap instruction",
		code: `48 8d 47 01 c3`, // lea 1(%rdi),%rax; ret
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Cost: SingleStep, Insn: "lea 0x1(%rdi),%rax", Args: regs(7)},
	},
	{
		name: "argument overwritten before the push",
		code: `31 ff 53 c3`, // xor %edi,%edi; push %rbx
		f:    Function{Args: []int{0}},
		want: Site{
			Cost: SingleStep, Insn: "xor %edi,%edi", Args: regs(7),
			Candidates: []Candidate{
				{0, SingleStep, "xor %edi,%edi", "chosen"},
				{2, Emulated, "push %rbx", "argument 0 is overwritten"},
				{3, SingleStep, "retq", "argument 0 is overwritten"},
			},
		},
	},
	{
		name: "half of an argument is not the argument",
		code: `89 fb bf 01 00 00 00 53`, // mov %edi,%ebx; mov $1,%edi; push %rbx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "mov %edi,%ebx", Args: regs(7)},
	},
	{
		name: "other arguments may be overwritten",
		code: `31 f6 53`, // xor %esi,%esi; push %rbx
		f:    Function{Args: []int{0}},
		want: Site{Offset: 2, Cost: Emulated, Insn: "push %rbx", Args: regs(7)},
	},
	{
		name: "arguments exchanged",
		code: `48 87 fe 53`, // xchg %rdi,%rsi; push %rbx
		f:    Function{Args: []int{0, 1}},
		want: Site{Offset: 3, Cost: Emulated, Insn: "push %rbx", Args: regs(6, 7)},
	},
	{
		name: "copy survives the original",
		code: `48 89 fa 48 89 f7 53`, // mov %rdi,%rdx; mov %rsi,%rdi; push %rbx
		f:    Function{Args: []int{0, 1}},
		want: Site{Offset: 6, Cost: Emulated, Insn: "push %rbx", Args: regs(2, 6)},
	},
	{
		name: "product by imul",
		code: `48 0f af fe 31 f6 53`, // imul %rsi,%rdi; xor %esi,%esi; push %rbx
		f:    Function{Args: []int{0, 1}, Factors: [2]int{1, 0}},
		want: Site{
			Offset: 6, Cost: Emulated, Insn: "push %rbx",
			Args: []Place{{Reg: 7, Product: true}, {Reg: 7, Product: true}},
		},
	},
	{
		name: "product of 32 bits is none",
		code: `0f af fe 53`, // imul %esi,%edi; push %rbx
		f:    Function{Args: []int{0, 1}, Factors: [2]int{0, 1}},
		want: Site{Cost: SingleStep, Insn: "imul %esi,%edi", Args: regs(7, 6)},
	},
	{
		name: "product with something else is none",
		code: `48 0f af 3e 53`, // imul (%rsi),%rdi; push %rbx
		f:    Function{Args: []int{0, 1}, Factors: [2]int{0, 1}},
		want: Site{Cost: SingleStep, Insn: "imul (%rsi),%rdi", Args: regs(7, 6)},
	},
	{
		name: "stack moved, return probe",
		code: `48 83 ec 08 53`, // sub $8,%rsp; push %rbx
		f:    Function{Args: []int{0}, Return: true},
		want: Site{
			Cost: SingleStep, Insn: "sub $0x8,%rsp", Args: regs(7),
			Candidates: []Candidate{
				{0, SingleStep, "sub $0x8,%rsp", "chosen"},
				{4, Emulated, "push %rbx", "stack pointer has moved by 8, return probe impossible"},
			},
		},
	},
	{
		name: "stack moved, entry probe",
		code: `48 83 ec 08 53`,
		f:    Function{Args: []int{0}},
		want: Site{Offset: 4, Cost: Emulated, Insn: "push %rbx", Args: regs(7), StackAdjust: 8},
	},
	{
		name: "stack pointer raised above the return address",
		code: `48 83 ec 80 53`, // sub $-128,%rsp; push %rbx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "sub $-0x80,%rsp", Args: regs(7)},
	},
	{
		name: "stack moved by lea",
		code: `48 8d 64 24 d8 53`, // lea -40(%rsp),%rsp; push %rbx
		f:    Function{Args: []int{0}},
		want: Site{Offset: 5, Cost: Emulated, Insn: "push %rbx", Args: regs(7), StackAdjust: 40},
	},
	{
		name: "stack aligned",
		code: `48 83 e4 f0 53`, // and $-16,%rsp; push %rbx
		f:    Function{Args: []int{0}},
		want: Site{
			Cost: SingleStep, Insn: "and $-0x10,%rsp", Args: regs(7),
			Candidates: []Candidate{{0, SingleStep, "and $-0x10,%rsp", "chosen"}},
		},
	},
	{
		name: "return address popped",
		code: `58 53`, // pop %rax; push %rbx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "pop %rax", Args: regs(7)},
	},
	{
		name: "branch into the window",
		// test %rsi,%rsi; push %rbx; nop; jmp back to the push
		code: `48 85 f6 53 90 eb fc`,
		f:    Function{Args: []int{0}},
		want: Site{
			Cost: SingleStep, Insn: "test %rsi,%rsi", Args: regs(7),
			Candidates: []Candidate{
				{0, SingleStep, "test %rsi,%rsi", "chosen"},
				{3, Emulated, "push %rbx", "branch at 0x1005 leads to +3"},
				{4, Emulated, "nop", "branch at 0x1005 leads to +3"},
				{5, Emulated, "jmp 0x1003", "branch at 0x1005 leads to +3"},
			},
		},
	},
	{
		name: "branch to between entry and site",
		// test %rsi,%rsi; test %rdx,%rdx; push %rbx; ret; je back to the second test
		code: `48 85 f6 48 85 d2 53 c3 0f 84 f5 ff ff ff`,
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "test %rsi,%rsi", Args: regs(7)},
	},
	{
		name: "branch to a place after the site",
		code: `48 85 f6 53 90 eb fd`, // test; push; nop; jmp back to the nop
		f:    Function{Args: []int{0}},
		want: Site{Offset: 3, Cost: Emulated, Insn: "push %rbx", Args: regs(7)},
	},
	{
		name: "branch into the window after something unknown",
		code: `48 85 f6 53 c3 06 06 eb fa`, // test; push; ret; invalid; jmp back to the push
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "test %rsi,%rsi", Args: regs(7)},
	},
	{
		name: "branch into the window from another part",
		code: `48 85 f6 53 c3`,
		f:    Function{Args: []int{0}, Incoming: []Branch{{From: 0x9000, To: entry + 3}}},
		want: Site{Cost: SingleStep, Insn: "test %rsi,%rsi", Args: regs(7)},
	},
	{
		name: "branches to the entry, after the site and elsewhere",
		code: `48 85 f6 53 c3`,
		f: Function{Args: []int{0}, Incoming: []Branch{
			{From: 0x9000, To: entry, Call: true},
			{From: 0x9005, To: entry + 4},
			{From: 0x900a, To: 0x2000},
			{From: entry + 1, To: entry + 3},
		}},
		want: Site{Offset: 3, Cost: Emulated, Insn: "push %rbx", Args: regs(7)},
	},
	{
		name: "loop to the entry",
		code: `48 ff cf 75 fb c3`, // dec %rdi; jne entry; ret
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Cost: SingleStep, Insn: "dec %rdi", Args: regs(7), TailCalls: []string{"loop to the entry"}},
	},
	{
		name: "recursive call is no tail call",
		code: `53 e8 fa ff ff ff`,
		f:    Function{Args: []int{0}},
		want: Site{Cost: Emulated, Insn: "push %rbx", Args: regs(7)},
	},
	{
		name: "after a branch that is not a null check",
		code: `48 85 f6 74 10 53`, // test %rsi,%rsi
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 3, Cost: Emulated, Insn: "je 0x1015", Args: regs(7)},
	},
	{
		name: "after a null check that continues with null",
		code: `48 85 ff 75 10 53`, // test %rdi,%rdi; jne
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 3, Cost: Emulated, Insn: "jne 0x1015", Args: regs(7)},
	},
	{
		name: "null check of 32 bits",
		code: `85 ff 74 10 53`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 2, Cost: Emulated, Insn: "je 0x1014", Args: regs(7)},
	},
	{
		name: "null check of a copy with a move in between",
		code: `48 89 f8 48 83 f8 00 48 8d 35 00 00 00 00 74 10 53`, // cmp $0,%rax; lea; je; push
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 16, Cost: Emulated, Insn: "push %rbx", Args: regs(7), SkipsNull: true},
	},
	{
		name: "null check with the flags changed in between",
		code: `48 85 ff 48 ff c6 74 10 53`, // test %rdi,%rdi; inc %rsi; je
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 6, Cost: Emulated, Insn: "je 0x1018", Args: regs(7)},
	},
	{
		name: "two checks, the second of something else",
		code: `48 85 ff 74 10 48 85 f6 74 0b 53`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 8, Cost: Emulated, Insn: "je 0x1015", Args: regs(7), SkipsNull: true},
	},
	{
		name: "null check after which nothing is cheap",
		code: `48 85 ff 74 02 8b 07 c3`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 3, Cost: Emulated, Insn: "je 0x1007", Args: regs(7)},
	},
	{
		name: "frame pointer kept",
		// test; je; mov %rdi,%rbp; push %rbx
		code: `48 85 ff 74 10 48 89 fd 53`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{
			Offset: 3, Cost: Emulated, Insn: "je 0x1015", Args: regs(7),
			Candidates: []Candidate{
				{0, SingleStep, "test %rdi,%rdi", "+3 costs less"},
				{3, Emulated, "je 0x1015", "chosen"},
				{5, SingleStep, "mov %rdi,%rbp", "+3 costs less"},
				{8, Emulated, "push %rbx", "+3 has the caller's frame pointer"},
			},
		},
	},
	{
		name: "frame pointer changed, as there is nothing else",
		code: `48 89 e5 53`,
		f:    Function{Args: []int{0}},
		want: Site{Offset: 3, Cost: Emulated, Insn: "push %rbx", Args: regs(7), FrameChanged: true},
	},
	{
		name: "unknown effects end the search",
		code: `0f a2 53`, // cpuid; push
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "cpuid", Args: regs(7)},
	},
	{
		name: "string operations end the search",
		code: `f3 48 ab 53`, // rep stos
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "rep stos %rax,%es:(%rdi)", Args: regs(7)},
	},
	{
		name: "entry refused",
		code: `2e 90 48 89 f8 c3`, // nop with a segment prefix; mov %rdi,%rax; ret
		f:    Function{Args: []int{0}},
		want: Site{
			Offset: 2, Cost: SingleStep, Insn: "mov %rdi,%rax", Args: regs(7),
			Candidates: []Candidate{
				{0, Refused, "cs nop", "refused by the kernel"},
				{2, SingleStep, "mov %rdi,%rax", "chosen"},
				{5, SingleStep, "retq", "+2 comes first"},
			},
		},
	},
	{
		name: "thunk over a slot",
		code: `f3 0f 1e fa f2 ff 25 75 2f 00 00`, // endbr64; bnd jmp *slot(%rip)
		f: Function{
			Args: []int{0}, Return: true,
			Slot: func(addr uint64) (string, bool) { return "malloc", addr == 0x3f80 },
		},
		want: Site{
			Cost: SingleStep, Insn: "endbr64", Args: regs(7),
			TailCalls: []string{"malloc"}, Thunk: &Thunk{Slot: 0x3f80},
		},
	},
	{
		name: "tail calls once each",
		code: `53 5b 74 10 e9 07 00 00 00 e9 02 00 00 00 eb 0e`,
		f: Function{
			Args:   []int{0},
			Target: func(addr uint64) (string, bool) { return "other", addr == 0x1010 },
		},
		want: Site{Cost: Emulated, Insn: "push %rbx", Args: regs(7), TailCalls: []string{"other"}},
	},
	{
		name: "nop5 optimised",
		code: `0f 1f 44 00 00 53`,
		f:    Function{Args: []int{0}, Return: true},
		o:    Options{Nops: true, Nop5: true},
		want: Site{Cost: NopOptimised, Insn: "nopl (%rax,%rax)", Args: regs(7)},
	},
	{
		name: "nop5 after a store, which may be below the stack pointer",
		code: `48 89 7c 24 f8 0f 1f 44 00 00 c3`,
		f:    Function{Args: []int{0}, Return: true},
		o:    Options{Nops: true, Nop5: true},
		want: Site{Offset: 5, Cost: Emulated, Insn: "nopl (%rax,%rax)", Args: regs(7)},
	},
	{
		name: "nop5 on an old kernel",
		code: `0f 1f 44 00 00 53`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 5, Cost: Emulated, Insn: "push %rbx", Args: regs(7)},
	},
	{
		name: "glibc, after the call of sbrk",
		code: `48 83 f8 ff 74 08 48 83 c4 08 c3`, // cmp $-1,%rax; je; add $8,%rsp; ret
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "je 0x100e", Args: regs(0)},
	},
	{
		name: "glibc, after the call of mremap",
		code: `48 89 c1 48 83 f8 ff 0f 84 8c 00 00 00`, // mov %rax,%rcx; cmp $-1,%rax; je
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Offset: 7, Cost: Emulated, Insn: "je 0x1099", Args: regs(0)},
	},
	{
		name: "after a call, the result copied and the original gone",
		code: `48 89 c3 31 c0 53 c3`, // mov %rax,%rbx; xor %eax,%eax; push %rbx; ret
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Offset: 5, Cost: Emulated, Insn: "push %rbx", Args: regs(3)},
	},
	{
		name: "after a call, the result gone at once",
		code: `48 83 c0 01 74 08`, // add $1,%rax; je
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Cost: SingleStep, Insn: "add $0x1,%rax", Args: regs(0)},
	},
	{
		name: "after a call, in a loop that begins there",
		code: `48 83 f8 ff 74 08 c3`,
		f:    Function{Args: []int{0}, AfterCall: true, Incoming: []Branch{{From: 0x2000, To: 0x1004}}},
		want: Site{Cost: SingleStep, Insn: "cmp $-0x1,%rax", Args: regs(0)},
	},
	{
		name: "after a call, higher on the stack",
		code: `48 83 c4 08 74 08 c3`, // add $8,%rsp; je; ret
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Cost: SingleStep, Insn: "add $0x8,%rsp", Args: regs(0)},
	},
	{
		name: "after a call, deeper on the stack",
		code: `50 50 74 08 c3`, // push %rax; push %rax; je; ret
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Cost: Emulated, Insn: "push %rax", Args: regs(0)},
	},
	{
		name: "no arguments",
		code: `c3`,
		want: Site{Cost: SingleStep, Insn: "retq"},
	},
}

func TestChooseRules(t *testing.T) {
	for _, c := range rules {
		t.Run(c.name, func(t *testing.T) { c.run(t, AMD64) })
	}
}
