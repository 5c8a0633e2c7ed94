package reference

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// chainStart and chainEnd are a program around a chain of functions, the
// innermost of which says "ready" and waits.
const (
	chainStart = `
	.globl main
main:
	.cfi_startproc
	sub $8, %rsp
	.cfi_def_cfa_offset 16
	mov $-0x3123456789abcdef, %r12
	call chain0
	.cfi_endproc
`
	chainEnd = `
chain%d:
	.cfi_startproc
	mov $3, %%edi
	lea ready(%%rip), %%rsi
	mov $6, %%edx
	mov $1, %%eax
	syscall
	mov $4, %%edi
	lea -64(%%rsp), %%rsi
	mov $1, %%edx
	xor %%eax, %%eax
	syscall
	hlt
	.cfi_endproc
ready:
	.ascii "ready\n"
	.section .note.GNU-stack, "", @progbits
`
)

// TestRandomExpressions lets gdb execute random expressions: each function of a
// chain says that its caller's rbx is what one computes, from r12 among others.
// (Were rbx one of them, gdb would take for ever.)
func TestRandomExpressions(t *testing.T) {
	const functions = 250
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var text strings.Builder
			text.WriteString(chainStart)
			for i := range functions {
				e := randomExpression{Rand: rand.New(rand.NewPCG(seed, uint64(i))), depth: 1}
				e.generate()
				fmt.Fprintf(&text, "chain%d:\n\t.cfi_startproc\n\tsub $8, %%rsp\n\t.cfi_def_cfa_offset 16\n\t.cfi_escape 0x16, 3, %d, %d", i, len(e.code)&0x7f|0x80, len(e.code)>>7)
				for _, b := range e.code {
					fmt.Fprintf(&text, ", %d", b)
				}
				fmt.Fprintf(&text, "\n\tcall chain%d\n\t.cfi_endproc\n", i+1)
			}
			fmt.Fprintf(&text, chainEnd, functions)
			source := filepath.Join(t.TempDir(), "chain.s")
			if err := os.WriteFile(source, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			prog := strings.TrimSuffix(source, ".s")
			if out, err := exec.Command("gcc", "-o", prog, source).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			c := testutil.Spawn(t, prog)
			c.Ready()
			got := compareWithGDB(t, c.PID, c.PID, 1, native())
			values := map[uint64]bool{}
			for i := range got {
				values[got[i].R[3]] = true
			}
			if len(values) < functions/2 {
				t.Errorf("%d different values of %d expressions", len(values), functions)
			}
		})
	}
}

// randomExpression makes expressions that need no luck: they divide by nothing
// that is zero, shift by less than 64 and read the stack only.
type randomExpression struct {
	*rand.Rand
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
	// All entries count.
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
		e.code = append(e.code, opBreg0+12, number[0]&0x7f)
	case 4:
		e.code = append(e.code, opBregx, 12, 0x80|number[0], number[1]&0x7f)
	case 5:
		e.code = append(e.code, opBreg0+7, byte(e.IntN(24)), opDerefSize, 1<<e.IntN(4))
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
	case 0: // none is zero
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

// branch jumps over something, always or if an entry is not zero.
func (e *randomExpression) branch() {
	if e.IntN(2) == 0 {
		e.code = append(e.code, opSkip, 3, 0, 0xff, 0xff, 0xff)
		return
	}
	e.code = append(e.code, opLit0+1, opAnd, opBra, 2, 0, opNeg, opNot)
	e.depth--
}
