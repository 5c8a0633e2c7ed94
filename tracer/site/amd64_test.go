package site

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// entry is where the functions of the tables start.
const entry = 0x1000

// code decodes bytes in the form in which disassemblers print them.
func code(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatalf("code %q: %v", s, err)
	}
	return b
}

// regs returns places of plain arguments.
func regs(rs ...uint8) []Place {
	var places []Place
	for _, r := range rs {
		places = append(places, Place{Reg: r})
	}
	return places
}

// choiceTest is a function and the site that must be chosen. The verdicts on the other
// instructions are compared only if a test has them.
type choiceTest struct {
	name string
	code string
	f    Function
	o    Options
	want Site
}

func (c *choiceTest) run(t *testing.T, arch Arch) {
	c.o.Arch = arch
	c.f.Name, c.f.Entry, c.f.Code = c.name, entry, code(t, c.code)
	got, err := Choose(c.o, c.f)
	if err != nil {
		t.Fatal(err)
	}
	c.want.Addr = entry + uint64(c.want.Offset)
	opts := []cmp.Option{cmpopts.EquateEmpty()}
	if c.want.Candidates == nil {
		opts = append(opts, cmpopts.IgnoreFields(Site{}, "Candidates"))
	}
	if d := cmp.Diff(c.want, got, opts...); d != "" {
		t.Errorf("site (-want +got):\n%s", d)
		for _, c := range got.Candidates {
			t.Logf("+%d %v %s: %s", c.Offset, c.Cost, c.Insn, c.Verdict)
		}
	}
}

// Functions of real libraries, from Debian 12, truncated after their first branches.
var realAMD64 = []choiceTest{
	{
		name: "glibc malloc",
		code: `41 54 55 53 48 89 fb 48 83 ec 10 80 3d 46 1b 14 00 00 0f 84 f8 01 00 00`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Cost: Emulated, Insn: "push %r12", Args: regs(7)},
	},
	{
		name: "glibc free, null skipped",
		code: `48 85 ff 0f 84 bf 00 00 00 55 48 8d 77 f0 53 48 83 ec 18 48 8b 1d d6 9e 13 00`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 9, Cost: Emulated, Insn: "push %rbp", Args: regs(7), SkipsNull: true},
	},
	{
		name: "glibc free, null seen",
		code: `48 85 ff 0f 84 bf 00 00 00 55 48 8d 77 f0 53 48 83 ec 18`,
		f:    Function{Args: []int{0}},
		want: Site{
			Offset: 3, Cost: Emulated, Insn: "je 0x10c8", Args: regs(7),
			Candidates: []Candidate{
				{0, SingleStep, "test %rdi,%rdi", "+3 costs less"},
				{3, Emulated, "je 0x10c8", "chosen"},
			},
		},
	},
	{
		name: "glibc calloc",
		code: `41 55 48 89 f8 41 54 55 53 48 83 ec 18 48 f7 e6 48 89 c3 0f 90 c0 48 85 db 0f 88 d9 02 00 00`,
		f:    Function{Args: []int{0, 1}, Factors: [2]int{0, 1}, Return: true},
		want: Site{Cost: Emulated, Insn: "push %r13", Args: regs(7, 6)},
	},
	{
		name: "glibc reallocarray",
		code: `48 89 f0 48 f7 e2 48 89 c6 70 05 e9 40 b8 f8 ff 48 8b 05 e9 85 13 00
			64 c7 00 0c 00 00 00 31 c0 c3`,
		f: Function{
			Args: []int{0, 1, 2}, Factors: [2]int{1, 2}, Return: true,
			Target: func(addr uint64) (string, bool) { return "realloc", addr == 0xfffffffffff8c850 },
		},
		want: Site{
			Offset: 9, Cost: Emulated, Insn: "jo 0x1010",
			Args:      []Place{{Reg: 7}, {Reg: 0, Product: true}, {Reg: 0, Product: true}},
			TailCalls: []string{"realloc"},
		},
	},
	{
		name: "glibc reallocarray without product",
		code: `48 89 f0 48 f7 e2 48 89 c6 70 05 e9 40 b8 f8 ff`,
		f:    Function{Args: []int{0, 1, 2}, Return: true},
		want: Site{
			Cost: SingleStep, Insn: "mov %rsi,%rax", Args: regs(7, 6, 2),
			Candidates: []Candidate{
				{0, SingleStep, "mov %rsi,%rax", "chosen"},
				{3, SingleStep, "mul %rdx", "+0 comes first"},
				{6, SingleStep, "mov %rax,%rsi", "argument 2 is overwritten"},
				{9, Emulated, "jo 0x1010", "argument 1 is overwritten"},
			},
		},
	},
	{
		name: "glibc memalign",
		code: `80 3d 71 0e 14 00 00 74 07 e9 32 f6 ff ff 66 90 48 83 ec 18 48 89 74 24 08 48 89 3c 24
			e8 be bc ff ff 48 8b 74 24 08 48 8b 3c 24 48 83 c4 18 e9 0c f6 ff ff`,
		f: Function{
			Args: []int{0, 1}, Return: true,
			Target: func(addr uint64) (string, bool) { return "local", addr == 0x640 },
		},
		want: Site{
			Offset: 7, Cost: Emulated, Insn: "je 0x1010", Args: regs(7, 6),
			TailCalls: []string{"local"},
		},
	},
	{
		name: "glibc valloc",
		code: `80 3d 31 0e 14 00 00 53 48 89 fb 74 1b 48 8b 05 34 98 13 00 48 89 de 5b 48 8b 78 18
			e9 df f5 ff ff 0f 1f 80 00 00 00 00 e8 73 bc ff ff eb de`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 7, Cost: Emulated, Insn: "push %rbx", Args: regs(7)},
	},
	{
		name: "glibc posix_memalign",
		code: `80 3d 01 02 14 00 00 41 54 49 89 d4 55 48 89 fd 53 48 89 f3 74 5a`,
		f:    Function{Args: []int{0, 1, 2}, Return: true},
		want: Site{Offset: 7, Cost: Emulated, Insn: "push %r12", Args: regs(7, 6, 2)},
	},
	{
		name: "jemalloc malloc",
		code: `48 81 ff 00 10 00 00 0f 87 93 00 00 00 48 8d 15 5c 7f 2c 00`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 7, Cost: Emulated, Insn: "ja 0x10a0", Args: regs(7)},
	},
	{
		name: "jemalloc free",
		code: `48 89 f8 48 8b 15 0e 53 0a 00 48 89 f9 48 c1 e8 1a 48 81 e1 00 00 00 c0 25 f0 00 00 00
			64 48 03 04 25 00 00 00 00 48 01 d0 48 3b 88 b0 01 00 00 0f 85 8a 00 00 00`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 0x30, Cost: Emulated, Insn: "jne 0x10c0", Args: regs(7)},
	},
	{
		name: "mimalloc malloc",
		code: `48 8b 05 49 b4 00 00 48 89 fe 64 48 8b 38 48 81 fe 00 04 00 00 77 29`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 21, Cost: Emulated, Insn: "ja 0x1040", Args: regs(6)},
	},
	{
		name: "mimalloc free",
		code: `48 89 f9 48 85 ff 74 5d 48 8d 7f ff 48 89 c8 48 81 e7 00 00 00 fe 48 29 f8 48 c1 e8 10
			48 8d 04 80 48 c1 e0 04 48 8d b0 08 01 00 00 64 4c 8b 04 25 00 00 00 00
			48 8b 97 00 01 00 00 8b 84 07 0c 01 00 00 48 29 c6 48 01 fe 49 39 d0 75 32`,
		f:    Function{Args: []int{0}, SkipNull: true},
		want: Site{Offset: 0x4c, Cost: Emulated, Insn: "jne 0x1080", Args: regs(1), SkipsNull: true},
	},
	{
		name: "mimalloc realloc",
		code: `48 8b 05 49 a9 00 00 48 89 f2 48 89 fe 64 48 8b 00 48 89 c7 e9 f7 4e ff ff 0f 1f 80 00 00 00 00`,
		f:    Function{Args: []int{0, 1}, Return: true},
		want: Site{Offset: 20, Cost: Emulated, Insn: "jmp 0xffffffffffff5f10", Args: regs(6, 2)},
	},
	{
		name: "mimalloc calloc",
		code: `48 8b 15 c9 ad 00 00 48 89 f8 64 48 8b 3a 48 83 f8 01 74 08 48 f7 e6 48 89 c6 70 64`,
		f:    Function{Args: []int{0, 1}, Factors: [2]int{0, 1}, Return: true},
		want: Site{Offset: 18, Cost: Emulated, Insn: "je 0x101c", Args: regs(0, 6)},
	},
	{
		name: "tcmalloc posix_memalign",
		code: `48 8d 46 ff 48 83 c8 07 48 85 f0 75 2b 53 b8 16 00 00 00 48 89 fb`,
		f:    Function{Args: []int{0, 1, 2}, Return: true},
		want: Site{Offset: 11, Cost: Emulated, Insn: "jne 0x1038", Args: regs(7, 6, 2)},
	},
	{
		name: "musl malloc",
		code: `e9 6b 19 00 00 66 2e 0f 1f 84 00 00 00 00 00 90`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{
			Cost: Emulated, Insn: "jmp 0x2970", Args: regs(7),
			Thunk: &Thunk{Target: 0x2970},
		},
	},
	{
		name: "musl valloc",
		code: `48 89 fe bf 00 10 00 00 e9 00 00 ff ff`,
		f:    Function{Args: []int{0}, Return: true},
		want: Site{Offset: 8, Cost: Emulated, Insn: "jmp 0xffffffffffff100d", Args: regs(6)},
	},
	{
		name: "musl reallocarray",
		code: `48 89 d1 48 85 d2 74 08 48 89 f0 48 f7 e1 70 09 48 0f af f1 e9 27 b0 fe ff 50`,
		f:    Function{Args: []int{0, 1, 2}, Factors: [2]int{1, 2}, Return: true},
		want: Site{Offset: 6, Cost: Emulated, Insn: "je 0x1010", Args: regs(7, 6, 2)},
	},
}

func TestChooseRealAMD64(t *testing.T) {
	for _, c := range realAMD64 {
		t.Run(c.name, func(t *testing.T) { c.run(t, AMD64) })
	}
}
