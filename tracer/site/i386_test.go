package site

import "testing"

// words returns places of arguments that are where the caller has put them.
func words(ks ...uint8) []Place {
	var places []Place
	for _, k := range ks {
		places = append(places, Place{Reg: StackWord + k})
	}
	return places
}

// Functions of glibc 2.36, from Debian 12 for i386, truncated after their first branches.
var realI386 = []choiceTest{
	{
		name: "glibc malloc",
		code: `55 57 e8 7a 5b 0d 00 81 c7 cd 36 18 00 56 53 83 ec 1c`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{
			Cost: Emulated, Insn: "push %ebp", Args: words(0),
			Candidates: []Candidate{
				{0, Emulated, "push %ebp", "chosen"},
				{1, Emulated, "push %edi", "stack pointer has moved by 4, return probe impossible"},
				{2, Emulated, "call 0xd6b81", "stack pointer has moved by 8, return probe impossible"},
			},
		},
	},
	{
		name: "glibc free",
		code: `55 57 56 e8 ad 58 0d 00 81 c6 fc 33 18 00 53 83 ec 1c 8b 5c 24 30 85 db 74 5b`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Cost: Emulated, Insn: "push %ebp", Args: words(0)},
	},
	{
		name: "glibc reallocarray, after the call of the thunk",
		code: `83 ec 08 8b 44 24 14 f7 64 24 18 70 15 83 ec 08 50`,
		f:    Function{Args: []int{2, 3}, Factors: [2]int{2, 3}},
		want: Site{Offset: 11, Cost: Emulated, Insn: "jo 0x1022", Args: words(2, 3), StackAdjust: 8},
	},
	{
		name: "glibc, after the call of sbrk",
		code: `83 c4 10 83 f8 ff 74 08`, // add $16,%esp; cmp $-1,%eax; je
		f:    Function{Args: []int{0}, AfterCall: true},
		want: Site{Cost: SingleStep, Insn: "add $0x10,%esp", Args: regs(0)},
	},
}

func TestChooseRealI386(t *testing.T) {
	for _, c := range realI386 {
		t.Run(c.name, func(t *testing.T) { c.run(t, I386) })
	}
}
