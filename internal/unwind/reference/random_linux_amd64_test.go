package reference

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// chain is a program for random expressions: main, functions that call each other, and the
// innermost one, which prints "ready" and waits.
type chain struct {
	target
	main, call, end string // what comes first, in each function, and last
	base, sp        byte   // DWARF numbers: base is the register that main sets
	word            int    // bytes of a word
}

// chains holds the chains in the order of targets.
var chains = []chain{
	{
		base: 12, sp: 7, word: 8,
		main: "sub $8, %rsp\n.cfi_def_cfa_offset 16\nmov $-0x3123456789abcdef, %r12",
		call: "sub $8, %rsp\n.cfi_def_cfa_offset 16",
		end: `
	mov $3, %edi
	lea ready(%rip), %rsi
	mov $6, %edx
	mov $1, %eax
	syscall
	mov $4, %edi
	lea -64(%rsp), %rsi
	mov $1, %edx
	xor %eax, %eax
	syscall`,
	},
	{
		base: 6, sp: 4, word: 4,
		main: "sub $12, %esp\n.cfi_def_cfa_offset 16\nmov $-0x31234567, %esi",
		call: "sub $12, %esp\n.cfi_def_cfa_offset 16",
		end: `
	mov $3, %ebx
	mov $ready, %ecx
	mov $6, %edx
	mov $4, %eax
	int $0x80
	mov $4, %ebx
	lea -64(%esp), %ecx
	mov $1, %edx
	mov $3, %eax
	int $0x80`,
	},
}

// program returns the source of the chain. The rules of each function compute its caller's
// register 3 with one of the expressions.
func (c *chain) program(expressions [][]byte) string {
	var text strings.Builder
	fmt.Fprintf(&text, "\t.globl main\nmain:\n.cfi_startproc\n%s\ncall chain0\n.cfi_endproc\n", c.main)
	for i, code := range expressions {
		fmt.Fprintf(&text, "chain%d:\n.cfi_startproc\n%s\n.cfi_escape 0x16, 3, %d, %d", i, c.call, len(code)&0x7f|0x80, len(code)>>7)
		for _, b := range code {
			fmt.Fprintf(&text, ", %d", b)
		}
		fmt.Fprintf(&text, "\ncall chain%d\n.cfi_endproc\n", i+1)
	}
	fmt.Fprintf(&text, "chain%d:\n.cfi_startproc%s\nhlt\n.cfi_endproc\n", len(expressions), c.end)
	text.WriteString("ready: .ascii \"ready\\n\"\n.section .note.GNU-stack, \"\", @progbits\n")
	return text.String()
}

// TestRandomExpressions compares the results of random expressions with gdb's. The rules of
// each function of a chain compute its caller's rbx, from r12 among others; on i386 ebx from
// esi. (If rbx were one of them, gdb would take forever.)
func TestRandomExpressions(t *testing.T) {
	const functions = 250
	for i, target := range targets() {
		c := &chains[i]
		c.target = target
		for seed := range uint64(3) {
			t.Run(target.name+fmt.Sprint(seed), func(t *testing.T) {
				target.need(t)
				var all [][]byte
				for i := range uint64(functions) {
					e := randomExpression{Rand: rand.New(rand.NewPCG(seed, i)), chain: c, depth: 1}
					e.generate()
					all = append(all, e.code)
				}
				if values := c.run(t, all); values < functions/2 {
					t.Errorf("%d different values of %d expressions", values, functions)
				}
			})
		}
	}
}

// run compares the results of a chain's expressions with gdb's. It returns the number of
// different values.
func (c *chain) run(t *testing.T, expressions [][]byte) int {
	source := filepath.Join(t.TempDir(), "chain.s")
	if err := os.WriteFile(source, []byte(c.program(expressions)), 0o644); err != nil {
		t.Fatal(err)
	}
	prog := strings.TrimSuffix(source, ".s")
	args := append([]string{"-no-pie", "-o", prog, source}, c.flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	child := testutil.Spawn(t, prog)
	child.Ready()
	values := map[uint64]bool{}
	for _, regs := range compareWithGDB(t, child.PID, child.PID, 1, c.options()) {
		values[regs.R[3]] = true
	}
	return len(values)
}

// randomExpression makes expressions that always succeed: they never divide by zero, shift by
// less than 32, and read only the stack.
type randomExpression struct {
	*rand.Rand
	chain *chain
	code  []byte
	depth int
}

func (e *randomExpression) generate() {
	for n := 5 + e.IntN(30); n > 0; n-- {
		switch kind := e.IntN(10); {
		case kind < 3 || e.depth < 3:
			e.value()
		case kind < 4:
			e.shuffle()
		case kind < 5:
			e.one()
		case kind < 6:
			e.branch()
		default:
			e.two()
		}
	}
	// Combine all entries into the result.
	for ; e.depth > 1; e.depth-- {
		e.code = append(e.code, opLit0+3, opMul, opPlus)
	}
}

// value adds an entry.
func (e *randomExpression) value() {
	e.depth++
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], e.Uint64()>>e.IntN(64))
	switch e.IntN(6) {
	case 0:
		e.code = append(e.code, opLit0+byte(e.IntN(32)))
	case 1:
		kind := e.IntN(8)
		e.code = append(e.code, opConst1u+byte(kind))
		e.code = append(e.code, number[:1<<(kind/2)]...)
	case 2:
		e.code = append(e.code, opConstu+byte(e.IntN(2)))
		e.code = append(e.code, 0x80|number[0], 0x80|number[1], number[2]&0x7f)
	case 3:
		e.code = append(e.code, opBreg0+e.chain.base, number[0]&0x7f)
	case 4:
		e.code = append(e.code, opBregx, e.chain.base, 0x80|number[0], number[1]&0x7f)
	case 5:
		size := 1 << e.IntN(bits.Len(uint(e.chain.word)))
		e.code = append(e.code, opBreg0+e.chain.sp, byte(e.IntN(24)), opDerefSize, byte(size))
	}
}

func (e *randomExpression) shuffle() {
	switch e.IntN(5) {
	case 0:
		e.code = append(e.code, opDup)
		e.depth++
	case 1:
		e.code = append(e.code, opOver)
		e.depth++
	case 2:
		e.code = append(e.code, opPick, byte(e.IntN(e.depth)))
		e.depth++
	case 3:
		e.code = append(e.code, opSwap)
	case 4:
		e.code = append(e.code, opRot)
	}
}

func (e *randomExpression) one() {
	switch e.IntN(5) {
	case 0:
		e.code = append(e.code, opAbs)
	case 1:
		e.code = append(e.code, opNeg)
	case 2:
		e.code = append(e.code, opNot)
	case 3:
		e.code = append(e.code, opPlusUconst, 0x80|byte(e.IntN(256)), byte(e.IntN(128)))
	case 4:
		e.code = append(e.code, opNop)
	}
}

// two adds an operation on two entries.
func (e *randomExpression) two() {
	switch e.IntN(4) {
	case 0: // avoid a zero
		e.code = append(e.code, opLit0+1+byte(e.IntN(31)), opOr, opDiv+byte(e.IntN(2))*(opMod-opDiv))
	case 1:
		e.code = append(e.code, opLit0+31, opAnd, opShl+byte(e.IntN(3)))
	case 2:
		e.code = append(e.code, opEq+byte(e.IntN(6)))
	case 3:
		ops := []byte{opAnd, opMinus, opMul, opOr, opPlus, opXor}
		e.code = append(e.code, ops[e.IntN(len(ops))])
	}
	e.depth--
}

// branch jumps over something, either always or if an entry is not zero.
func (e *randomExpression) branch() {
	if e.IntN(2) == 0 {
		e.code = append(e.code, opSkip, 3, 0, 0xff, 0xff, 0xff)
		return
	}
	e.code = append(e.code, opLit0+1, opAnd, opBra, 2, 0, opNeg, opNot)
	e.depth--
}
