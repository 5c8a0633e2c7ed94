package site

import (
	"slices"
	"strconv"
	"strings"
)

var names64 = []string{
	"%rax", "%rcx", "%rdx", "%rbx", "%rsp", "%rbp", "%rsi", "%rdi",
	"%r8", "%r9", "%r10", "%r11", "%r12", "%r13", "%r14", "%r15",
}

var names32 = []string{"%eax", "%ecx", "%edx", "%ebx", "%esp", "%ebp", "%esi", "%edi"}

// whole returns the number of the register that contains the register name.
func whole(name string) (int, bool) {
	n := strings.TrimPrefix(name, "%")
	for i, r := range names64 {
		r = r[1:]
		if i >= 8 {
			if n == r || n == r+"d" || n == r+"w" || n == r+"b" {
				return i, true
			}
			continue
		}
		short := r[1:] // ax, si
		low := short[:1]
		if i >= 4 {
			low = short
		}
		if n == r || n == "e"+short || n == short || n == low+"l" || i < 4 && n == low+"h" {
			return i, true
		}
	}
	return 0, false
}

// model finds sites in text. It keeps a set of places per argument.
type model struct {
	names   []string // whole registers
	word    int      // their size in bytes
	body    []line
	f       *Function
	holders map[int]map[int]bool // for each argument: its places
	onStack map[int]int          // i386: for each register: its distance from the entry's stack pointer
	depth   int
	frame   bool
	nonNull bool
	zero    bool // the flags show whether Args[0] is zero
	entered int
}

// expected is a place where the model would put the probe.
type expected struct {
	offset, depth  int
	frame, nonNull bool
	holders        map[int]map[int]bool
	args           []int
}

func (e *expected) holds(places []Place) bool {
	for i, a := range e.args {
		if places[i].Product || !e.holders[a][int(places[i].Reg)] {
			return false
		}
	}
	return len(places) == len(e.args)
}

func newModel(arch Arch, body []line, jumps map[uint64][]uint64, f *Function) *model {
	m := &model{names: names64, word: 8, body: body, f: f, holders: map[int]map[int]bool{}, entered: 1 << 30}
	places := []int{7, 6, 2, 1, 8, 9}
	if arch == I386 {
		m.names, m.word, m.onStack = names32, 4, map[int]int{}
		places = []int{16, 17, 18, 19, 20, 21, 22, 23}
	}
	for i, r := range places {
		m.holders[i] = map[int]bool{r: true}
	}
	for _, x := range body[1:] {
		if jumps[x.addr] != nil {
			m.entered = int(x.addr - f.Entry)
			break
		}
	}
	return m
}

// choose returns the place, or false if the model meets an unknown instruction.
func (m *model) choose() (expected, bool) {
	var good []expected
	known := m.follow(func(x line, offset int) {
		if m.emulated(x) && offset < m.entered && m.ready() {
			good = append(good, m.here(offset))
		}
	})
	if !known && len(good) == 0 {
		return expected{}, false
	}
	for _, want := range []func(e expected) bool{
		func(e expected) bool { return !e.frame && e.nonNull },
		func(e expected) bool { return !e.frame },
		func(e expected) bool { return e.nonNull },
		func(expected) bool { return true },
	} {
		if i := slices.IndexFunc(good, want); i >= 0 {
			return good[i], true
		}
	}
	first := newModel(m.arch(), m.body, nil, m.f)
	return first.here(0), !first.body[0].bad() && first.body[0].prefix != "cs" && first.body[0].prefix != "lock"
}

// path returns what the model knows before each instruction, by offset.
func (m *model) path() map[int]expected {
	seen := map[int]expected{}
	m.follow(func(_ line, offset int) { seen[offset] = m.here(offset) })
	return seen
}

// follow calls see before each instruction up to the first branch. It reports false if it stopped
// at an unknown instruction.
func (m *model) follow(see func(x line, offset int)) bool {
	for n, x := range m.body {
		offset := int(x.addr - m.f.Entry)
		if offset >= Window || n >= maxSteps {
			break
		}
		see(x, offset)
		if x.mnemonic == "je" && m.f.SkipNull && m.zero {
			m.nonNull = true
			continue
		}
		if m.ends(x) {
			break
		}
		if !m.apply(x) {
			return false
		}
		if m.depth < 0 {
			break
		}
	}
	return true
}

func (m *model) arch() Arch {
	if m.word == 4 {
		return I386
	}
	return AMD64
}

func (m *model) here(offset int) expected {
	e := expected{offset: offset, depth: m.depth, frame: m.frame, nonNull: m.nonNull, args: m.f.Args, holders: map[int]map[int]bool{}}
	for a, rs := range m.holders {
		e.holders[a] = map[int]bool{}
		for r := range rs {
			e.holders[a][r] = true
		}
	}
	return e
}

func (m *model) ready() bool {
	for _, a := range m.f.Args {
		if len(m.holders[a]) == 0 {
			return false
		}
	}
	return !m.f.Return || m.depth == 0
}

func (m *model) emulated(x line) bool {
	switch {
	case x.mnemonic == "push":
		return slices.Contains(m.names, x.operands[0])
	case x.mnemonic == "nop":
		return len(x.operands) == 0 && x.prefix == ""
	case strings.HasPrefix(x.mnemonic, "jrcxz"), strings.HasPrefix(x.mnemonic, "loop"), x.mnemonic == "jecxz":
		return false
	}
	_, ok := x.target()
	return ok
}

func (m *model) ends(x line) bool {
	switch x.mnemonic {
	case "ret", "retq", "hlt", "ud2", "syscall", "leave", "cpuid", "xgetbv", "rdtsc", "xbegin", "int3", "leaveq":
		return true
	}
	return strings.HasPrefix(x.mnemonic, "j") || strings.HasPrefix(x.mnemonic, "call") ||
		strings.HasPrefix(x.mnemonic, "loop") || x.prefix == "lock" || x.prefix == "rep" || x.prefix == "repz"
}

func (m *model) kill(r int) {
	for _, rs := range m.holders {
		delete(rs, r)
	}
	delete(m.onStack, r)
	if r == 5 {
		m.frame = true
	}
}

// apply applies one instruction; it reports false for unknown ones.
func (m *model) apply(x line) bool {
	op, n := x.mnemonic, len(x.operands)
	var last string
	if n > 0 {
		last = x.operands[n-1]
	}
	dst, isReg := whole(last)
	zero := m.zero
	m.zero = false
	if m.word == 4 {
		if done, known := m.memory(x, dst, isReg, zero); done {
			return known
		}
	}
	switch {
	case op == "endbr64", op == "endbr32", strings.HasPrefix(op, "nop"), strings.HasPrefix(op, "prefetch"), op == "xchg" && last == "%ax":
		m.zero = zero
		return true
	case op == "test" && n == 2:
		m.zero = x.operands[0] == last && slices.Contains(m.names, last) && m.holders[m.f.Args[0]][dst]
		return true
	case op == "cmp" && n == 2:
		m.zero = x.operands[0] == "$0x0" && slices.Contains(m.names, last) && m.holders[m.f.Args[0]][dst]
		return true
	case strings.HasPrefix(op, "test"), strings.HasPrefix(op, "cmp"), op == "bt", strings.HasPrefix(op, "ucomis"), strings.HasPrefix(op, "comis"):
		return true
	case strings.HasPrefix(op, "push"):
		m.depth += m.word
		m.zero = zero
		return true
	case op == "pop":
		m.depth -= m.word
		m.zero = zero
		m.kill(dst)
		return isReg && dst != 4
	case last == m.names[4]:
		return m.moveStack(x)
	case op == "mov" && slices.Contains(m.names, x.operands[0]) && slices.Contains(m.names, last):
		src, _ := whole(x.operands[0])
		m.copy(dst, src)
		m.zero = zero
		return true
	case n == 1 && (op == "mul" || strings.HasPrefix(op, "imul") || strings.HasPrefix(op, "div") || strings.HasPrefix(op, "idiv") || strings.HasPrefix(op, "mul")):
		m.kill(0)
		m.kill(2)
		return true
	case op == "cltq", op == "cwtl":
		m.kill(0)
		m.zero = zero
		return true
	case op == "cltd", op == "cqto":
		m.kill(2)
		m.zero = zero
		return true
	}
	keeps, known := writesLast(op)
	if !known {
		return false
	}
	m.zero = zero && keeps
	if isReg {
		m.kill(dst)
	}
	return isReg || strings.Contains(last, "(") || strings.HasPrefix(last, "%xmm") || strings.Contains(last, ":0x") || strings.HasPrefix(last, "0x")
}

// copy makes the place dst hold what src holds.
func (m *model) copy(dst, src int) {
	var args []int
	for a, rs := range m.holders {
		if rs[src] {
			args = append(args, a)
		}
	}
	at, is := m.address(src)
	if src == dst {
		m.frame = m.frame || dst == 5
	} else {
		m.kill(dst)
	}
	for _, a := range args {
		m.holders[a][dst] = true
	}
	if is {
		m.onStack[dst] = at
	}
}

func (m *model) moveStack(x line) bool {
	src := x.operands[0]
	var n int64
	var err error
	switch {
	case (x.mnemonic == "sub" || x.mnemonic == "add") && strings.HasPrefix(src, "$"):
		var u uint64
		u, err = strconv.ParseUint(strings.TrimPrefix(src, "$"), 0, 64)
		n = int64(u)
		if m.word == 4 {
			n = int64(int32(u))
		}
		if x.mnemonic == "add" {
			n = -n
		}
	case x.mnemonic == "lea" && strings.HasSuffix(src, "("+m.names[4]+")"):
		n, err = strconv.ParseInt(strings.TrimSuffix(src, "("+m.names[4]+")"), 0, 64)
		n = -n
	default:
		m.depth = -1 // the search ends, as after a known instruction
		return true
	}
	m.depth += int(n)
	return err == nil
}

// writesLast returns whether an instruction's only effect is on its last operand, and whether it
// keeps the flags.
func writesLast(op string) (keepsFlags, known bool) {
	for _, p := range []string{"mov", "lea", "set", "cmov", "not", "bswap", "pxor", "xorps", "punpck"} {
		if strings.HasPrefix(op, p) {
			return true, !strings.HasPrefix(op, "movmsk") && op != "movsq" && op != "movsl" || strings.HasPrefix(op, "movslq")
		}
	}
	for _, p := range []string{
		"add", "sub", "and", "or", "xor", "adc", "sbb", "inc", "dec", "neg", "shl", "shr", "sar",
		"rol", "ror", "imul", "bsf", "bsr", "tzcnt", "lzcnt", "popcnt", "bts", "btr", "btc",
	} {
		if op == p || len(op) == len(p)+1 && strings.HasPrefix(op, p) && strings.ContainsAny(op[len(p):], "bwlq") {
			return false, true
		}
	}
	return false, false
}
