package site

import "testing"

// Each rule for i386, with a function that is made for it.
var rulesI386 = []choiceTest{
	{
		name: "landing pad first",
		code: `f3 0f 1e fb 53`, // endbr32; push %ebx
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "push %ebx", Args: words(0)},
	},
	{
		name: "inc and dec are no prefixes",
		code: `40 49 53`, // inc %eax; dec %ecx; push %ebx
		f:    Function{Args: []int{0}, Return: true},
		want: Site{
			Offset: 2, Cost: Emulated, Insn: "push %ebx", Args: words(0),
			Candidates: []Candidate{
				{0, SingleStep, "inc %eax", "+2 costs less"},
				{1, SingleStep, "dec %ecx", "+0 comes first"},
				{2, Emulated, "push %ebx", "chosen"},
			},
		},
	},
	{
		name: "nop of lea",
		code: `8d 74 26 00 53`, // lea 0(%esi,%eiz,1),%esi; push %ebx
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 4, Cost: Emulated, Insn: "push %ebx", Args: words(0)},
	},
	{
		name: "pushes do not touch arguments",
		code: `ff 74 24 04 53`, // push 4(%esp); push %ebx
		f:    Function{Args: []int{0, 7}},
		want: Site{Offset: 4, Cost: Emulated, Insn: "push %ebx", Args: words(0, 7), StackAdjust: 4},
	},
	{
		name: "word overwritten",
		code: `c7 44 24 04 01 00 00 00 53`, // movl $1,4(%esp); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{
			Cost: SingleStep, Insn: "movl $0x1,0x4(%esp)", Args: words(0),
			Candidates: []Candidate{
				{0, SingleStep, "movl $0x1,0x4(%esp)", "chosen"},
				{8, Emulated, "push %ebx", "argument 0 is overwritten"},
			},
		},
	},
	{
		name: "another word overwritten",
		code: `c7 44 24 08 01 00 00 00 53`,
		f:    Function{Args: []int{0, 2}},
		want: Site{Offset: 8, Cost: Emulated, Insn: "push %ebx", Args: words(0, 2)},
	},
	{
		name: "last byte of a word overwritten",
		code: `c6 44 24 07 01 53`, // movb $1,7(%esp)
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "movb $0x1,0x7(%esp)", Args: words(0)},
	},
	{
		name: "halves of two words overwritten",
		code: `c7 44 24 06 01 00 00 00 53`, // movl $1,6(%esp)
		f:    Function{Args: []int{1}},
		want: Site{Cost: SingleStep, Insn: "movl $0x1,0x6(%esp)", Args: words(1)},
	},
	{
		name: "loaded before it was overwritten",
		code: `8b 44 24 04 c7 44 24 04 01 00 00 00 eb 0e`, // mov 4(%esp),%eax; movl $1,4(%esp); jmp
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 12, Cost: Emulated, Insn: "jmp 0x101c", Args: regs(0)},
	},
	{
		name: "local variable written",
		code: `83 ec 0c c7 44 24 08 01 00 00 00 53`, // sub $12,%esp; movl $1,8(%esp); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Offset: 11, Cost: Emulated, Insn: "push %ebx", Args: words(0), StackAdjust: 12},
	},
	{
		name: "unknown pointer written through",
		code: `8b 44 24 08 c7 00 01 00 00 00 53`, // mov 8(%esp),%eax; movl $1,(%eax); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "mov 0x8(%esp),%eax", Args: words(0)},
	},
	{
		name: "unknown pointer written through, argument loaded before",
		code: `8b 54 24 04 8b 44 24 08 c7 00 01 00 00 00 53`, // mov 4(%esp),%edx; ...
		f:    Function{Args: []int{0}},
		want: Site{Offset: 14, Cost: Emulated, Insn: "push %ebx", Args: regs(2)},
	},
	{
		name: "thread's variable written",
		code: `65 c7 05 00 00 00 00 00 00 00 00 53`, // movl $0,%gs:0; push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "movl $0x0,%gs:0x0", Args: words(0)},
	},
	{
		name: "written relative to the frame pointer",
		// mov %esp,%ebp; sub $8,%esp; mov %eax,-4(%ebp); movl $0,8(%ebp); jmp
		code: `89 e5 83 ec 08 89 45 fc c7 45 08 00 00 00 00 eb 0e`,
		f:    Function{Args: []int{0}},
		want: Site{
			Offset: 15, Cost: Emulated, Insn: "jmp 0x101f", Args: words(0), StackAdjust: 8, FrameChanged: true,
		},
	},
	{
		name: "written relative to the frame pointer, the argument",
		code: `89 e5 83 ec 08 89 45 fc c7 45 08 00 00 00 00 eb 0e`,
		f:    Function{Args: []int{1}},
		want: Site{Cost: SingleStep, Insn: "mov %esp,%ebp", Args: words(1)},
	},
	{
		name: "written relative to an address of the stack",
		// lea 4(%esp),%ecx; movl $0,4(%ecx); movl $0,-8(%ecx); jmp
		code: `8d 4c 24 04 c7 41 04 00 00 00 00 c7 41 f8 00 00 00 00 eb 0e`,
		f:    Function{Args: []int{0, 2}},
		want: Site{Offset: 18, Cost: Emulated, Insn: "jmp 0x1022", Args: words(0, 2)},
	},
	{
		name: "arguments exchanged in place",
		// mov 4(%esp),%eax; mov 8(%esp),%edx; mov %edx,4(%esp); mov %eax,8(%esp); jmp
		code: `8b 44 24 04 8b 54 24 08 89 54 24 04 89 44 24 08 eb 0e`,
		f:    Function{Args: []int{0, 1}, Return: true},
		want: Site{Offset: 16, Cost: Emulated, Insn: "jmp 0x1020", Args: regs(0, 2)},
	},
	{
		name: "argument moved to another word",
		code: `8b 44 24 08 89 44 24 04 31 c0 eb 0e`, // mov 8(%esp),%eax; mov %eax,4(%esp); xor %eax,%eax; jmp
		f:    Function{Args: []int{1}, Return: true},
		want: Site{Offset: 10, Cost: Emulated, Insn: "jmp 0x101a", Args: words(1)},
	},
	{
		name: "vector written next to an argument",
		code: `83 ec 0c 0f 11 04 24 53`, // sub $12,%esp; movups %xmm0,(%esp); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Offset: 7, Cost: Emulated, Insn: "push %ebx", Args: words(0), StackAdjust: 12},
	},
	{
		name: "vector written into an argument",
		code: `83 ec 0c 0f 11 44 24 04 53`, // sub $12,%esp; movups %xmm0,4(%esp); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "sub $0xc,%esp", Args: words(0)},
	},
	{
		name: "popped into memory, with the address after the pop",
		code: `83 ec 08 8f 44 24 04 53`, // sub $8,%esp; pop 4(%esp); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "sub $0x8,%esp", Args: words(0)},
	},
	{
		name: "exchanged with memory",
		code: `8b 4c 24 08 87 4c 24 04 eb 0e`, // mov 8(%esp),%ecx; xchg %ecx,4(%esp); jmp
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "mov 0x8(%esp),%ecx", Args: words(0)},
	},
	{
		name: "product by mul of memory",
		// mov 4(%esp),%eax; mull 8(%esp); movl $0,(%ecx); jo
		code: `8b 44 24 04 f7 64 24 08 c7 01 00 00 00 00 70 0e`,
		f:    Function{Args: []int{1, 0}, Factors: [2]int{1, 0}, Return: true},
		want: Site{
			Offset: 14, Cost: Emulated, Insn: "jo 0x101e",
			Args: []Place{{Reg: 0, Product: true}, {Reg: 0, Product: true}},
		},
	},
	{
		name: "product by imul of memory",
		code: `8b 44 24 04 0f af 44 24 08 c7 01 00 00 00 00 70 0e`,
		f:    Function{Args: []int{0, 1}, Factors: [2]int{0, 1}, Return: true},
		want: Site{
			Offset: 15, Cost: Emulated, Insn: "jo 0x101f",
			Args: []Place{{Reg: 0, Product: true}, {Reg: 0, Product: true}},
		},
	},
	{
		name: "product while the factors are in place",
		code: `8b 44 24 04 f7 64 24 08 70 0e`,
		f:    Function{Args: []int{0, 1}, Factors: [2]int{0, 1}, Return: true},
		want: Site{Offset: 8, Cost: Emulated, Insn: "jo 0x1018", Args: words(0, 1)},
	},
	{
		name: "product of 16 bits is none",
		code: `8b 44 24 04 66 0f af 44 24 08 c7 01 00 00 00 00 70 0e`,
		f:    Function{Args: []int{0, 1}, Factors: [2]int{0, 1}},
		want: Site{Cost: SingleStep, Insn: "mov 0x4(%esp),%eax", Args: words(0, 1)},
	},
	{
		name: "null check of a loaded argument",
		code: `8b 44 24 04 85 c0 74 0e 53`, // mov 4(%esp),%eax; test %eax,%eax; je; push %ebx
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 8, Cost: Emulated, Insn: "push %ebx", Args: words(0), SkipsNull: true},
	},
	{
		name: "null check in memory",
		code: `83 7c 24 04 00 74 0e 53`, // cmpl $0,4(%esp); je; push %ebx
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 7, Cost: Emulated, Insn: "push %ebx", Args: words(0), SkipsNull: true},
	},
	{
		name: "null check of a byte in memory",
		code: `80 7c 24 04 00 74 0e 53`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 5, Cost: Emulated, Insn: "je 0x1015", Args: words(0)},
	},
	{
		name: "null check of another argument",
		code: `83 7c 24 08 00 74 0e 53`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 5, Cost: Emulated, Insn: "je 0x1015", Args: words(0)},
	},
	{
		name: "bit far from its operand",
		code: `0f ab 44 24 fc 53`, // bts %eax,-4(%esp); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "bts %eax,-0x4(%esp)", Args: words(0)},
	},
	{
		name: "bit in its operand",
		code: `0f ba 6c 24 fc 05 53`, // btsl $5,-4(%esp); push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Offset: 6, Cost: Emulated, Insn: "push %ebx", Args: words(0)},
	},
	{
		name: "stack moved, return probe",
		code: `83 ec 0c 53`, // sub $12,%esp; push %ebx
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Cost: SingleStep, Insn: "sub $0xc,%esp", Args: words(0)},
	},
	{
		name: "stack aligned",
		code: `83 e4 f0 53`,
		f:    Function{Args: []int{0}},
		want: Site{
			Cost: SingleStep, Insn: "and $0xfffffff0,%esp", Args: words(0),
			Candidates: []Candidate{{0, SingleStep, "and $0xfffffff0,%esp", "chosen"}},
		},
	},
	{
		name: "jump of 16 bits",
		code: `53 66 e9 04 e0`,
		f:    Function{Args: []int{0}, Target: func(addr uint64) (string, bool) { return "low", addr == 0xf009 }},
		want: Site{
			Cost: Emulated, Insn: "push %ebx", Args: words(0), TailCalls: []string{"low"},
			Candidates: []Candidate{
				{0, Emulated, "push %ebx", "chosen"},
				{1, Refused, "jmp 0xf009", "refused by the kernel"},
			},
		},
	},
	{
		name: "addresses of 16 bits are not followed",
		code: `67 8b 46 04 53`, // mov 4(%bp),%eax; push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Offset: 4, Cost: Emulated, Insn: "push %ebx", Args: words(0)},
	},
	{
		name: "far pointers end the search",
		code: `c4 08 53`, // les (%eax),%ecx; push %ebx
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "les (%eax),%ecx", Args: words(0)},
	},
	{
		name: "pusha ends the search",
		code: `60 53`,
		f:    Function{Args: []int{0}},
		want: Site{Cost: SingleStep, Insn: "pusha", Args: words(0)},
	},
	{
		name: "thunk over a slot of the GOT",
		code: `f3 0f 1e fb ff 63 0c`, // endbr32; jmp *12(%ebx)
		f:    Function{Args: []int{0}, Return: true, Slot: func(addr uint64) (string, bool) { return "malloc", addr == 0x500c }},
		o:    Options{GOT: 0x5000},
		want: Site{
			Cost: SingleStep, Insn: "endbr32", Args: words(0),
			TailCalls: []string{"malloc"}, Thunk: &Thunk{Slot: 0x500c},
		},
	},
	{
		name: "thunk over a slot of a GOT that is unknown",
		code: `ff 63 0c`,
		f:    Function{Args: []int{0}, Return: true, Slot: func(uint64) (string, bool) { return "malloc", true }},
		want: Site{Cost: SingleStep, Insn: "jmp *0xc(%ebx)", Args: words(0)},
	},
	{
		name: "thunk over a slot at a fixed address",
		code: `ff 25 10 c0 04 08`,
		f:    Function{Args: []int{0}, Return: true, Slot: func(addr uint64) (string, bool) { return "malloc", addr == 0x804c010 }},
		want: Site{
			Cost: SingleStep, Insn: "jmp *0x804c010", Args: words(0),
			TailCalls: []string{"malloc"}, Thunk: &Thunk{Slot: 0x804c010},
		},
	},
	{
		name: "jump that wraps around",
		code: `e9 00 f0 ff ef`, // to 0x1005 - 0x10001000
		f: Function{
			Args: []int{0}, Return: true,
			Target: func(addr uint64) (string, bool) { return "high", addr == 0xf0000005 },
		},
		want: Site{
			Cost: Emulated, Insn: "jmp 0xf0000005", Args: words(0),
			TailCalls: []string{"high"}, Thunk: &Thunk{Target: 0xf0000005},
		},
	},
	{
		name: "after a call, the result on the stack",
		code: `89 44 24 08 31 c0 eb 0e`, // mov %eax,8(%esp); xor %eax,%eax; jmp
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Cost: SingleStep, Insn: "mov %eax,0x8(%esp)", Args: regs(0)},
	},
}

func TestChooseRulesI386(t *testing.T) {
	for _, c := range rulesI386 {
		t.Run(c.name, func(t *testing.T) { c.run(t, I386) })
	}
}
