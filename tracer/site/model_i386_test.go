package site

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// address returns the distance of the address in a register from the entry's stack pointer.
func (m *model) address(reg int) (int, bool) {
	if reg == 4 && m.word == 4 {
		return -m.depth, true
	}
	at, ok := m.onStack[reg]
	return at, ok
}

var atRegister = regexp.MustCompile(`^(-?0x[0-9a-f]+)?\((%e[a-d]x|%e[sb]p|%e[sd]i)(?:,%eiz,1)?\)$`)

// stackAddress returns the distance of an operand's address from the entry's stack pointer.
func (m *model) stackAddress(operand string) (at int, ok bool) {
	found := atRegister.FindStringSubmatch(operand)
	if found == nil {
		return 0, false
	}
	disp := int64(0)
	if found[1] != "" {
		var err error
		if disp, err = strconv.ParseInt(found[1], 0, 64); err != nil {
			return 0, false
		}
	}
	reg, _ := whole(found[2])
	base, ok := m.address(reg)
	return base + int(int32(disp)), ok
}

// wordAt returns the place of an argument word on the stack.
func (m *model) wordAt(operand string) (int, bool) {
	at, ok := m.stackAddress(operand)
	if !ok || at%4 != 0 || at < 4 || at >= 36 {
		return 0, false
	}
	return 16 + at/4 - 1, true
}

// store drops the words that a store of size bytes may have changed.
func (m *model) store(operand string, size int) {
	at, ok := m.stackAddress(operand)
	for k := range 8 {
		for b := range 4 {
			byteAt := 4 + 4*k + b
			if !ok || byteAt >= at && byteAt < at+size {
				m.kill(16 + k)
			}
		}
	}
}

// storeSize returns how many bytes an instruction writes to memory, or 0 if that is unknown.
func storeSize(x line) int {
	op, src := x.mnemonic, x.operands[0]
	switch {
	case strings.HasPrefix(src, "%xmm"):
		return map[string]int{
			"movaps": 16, "movups": 16, "movdqa": 16, "movdqu": 16, "movq": 8, "movlps": 8, "movhps": 8,
			"movlpd": 8, "movhpd": 8, "movsd": 8, "movss": 4, "movd": 4,
		}[op]
	case strings.HasPrefix(op, "set"):
		return 1
	case slices.Contains(names32, src):
		return 4
	case len(src) == 3 && strings.HasSuffix(src, "l") || len(src) == 3 && strings.HasSuffix(src, "h"):
		return 1
	case len(src) == 3 && src[0] == '%' && src[2] != 's':
		return 2
	case strings.HasSuffix(op, "b"):
		return 1
	case strings.HasSuffix(op, "w"):
		return 2
	case strings.HasSuffix(op, "l"):
		return 4
	}
	return 0
}

// memory applies the i386 instructions that read or write memory. done is false for others.
func (m *model) memory(x line, dst int, isReg, zero bool) (done, known bool) {
	op, n := x.mnemonic, len(x.operands)
	if n == 0 || strings.HasPrefix(op, "nop") || strings.HasPrefix(op, "prefetch") {
		return op == "pusha" || op == "pushf", false
	}
	first, last := x.operands[0], x.operands[n-1]
	inMemory := strings.HasSuffix(last, ")") || strings.Contains(last, ":") || strings.HasPrefix(last, "0x")
	switch {
	case op == "mov" && n == 2 && isReg && last != "%esp":
		if src, ok := m.wordAt(first); ok && slices.Contains(names32, last) {
			m.copy(dst, src)
			m.zero = zero
			return true, true
		}
	case op == "lea" && last != "%esp":
		at, ok := m.stackAddress(first)
		if found := atRegister.FindStringSubmatch(first); found != nil && (found[1] == "" || found[1] == "0x0") {
			src, _ := whole(found[2])
			m.copy(dst, src)
		} else {
			m.kill(dst)
			if ok {
				m.onStack[dst] = at
			}
		}
		m.zero = zero
		return true, true
	case op == "mov" && n == 2 && inMemory && slices.Contains(names32, first):
		src, _ := whole(first)
		word, ok := m.wordAt(last)
		if ok {
			m.copy(word, src)
		} else {
			m.store(last, 4)
		}
		m.zero = zero
		return true, true
	case op == "cmpl" && n == 2:
		word, ok := m.wordAt(last)
		m.zero = ok && first == "$0x0" && m.holders[m.f.Args[0]][word]
		return true, true
	case op == "pop" && inMemory:
		return true, false
	case inMemory && !reads(op):
		keeps, ok := writesLast(op)
		size := storeSize(x)
		if !ok || size == 0 {
			return true, false
		}
		m.store(last, size)
		m.zero = zero && keeps
		return true, true
	}
	return false, false
}

// reads lists the instructions that do not write to their last operand.
func reads(op string) bool {
	for _, p := range []string{"push", "cmp", "test", "mul", "imul", "div", "idiv", "bt", "j", "call", "ucomis", "comis"} {
		if strings.HasPrefix(op, p) {
			return op != "bts" && op != "btr" && op != "btc"
		}
	}
	return false
}
