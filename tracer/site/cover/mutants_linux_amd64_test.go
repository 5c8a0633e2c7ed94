package cover

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/site"
)

// mutable is a function whose code is changed, in a copy of its surroundings.
type mutable struct {
	Function
	image  Image
	insns  []uint64 // addresses of its instructions
	inside map[uint64]bool
	random *rand.Rand
	calls  func(target uint64) Callee
}

// nearby is how many bytes around a function are copied.
const nearby = 1 << 15

// newMutable copies a function. Which other functions return is decided with the real code.
func newMutable(t *testing.T, l *library, f Function, seed uint64) *mutable {
	t.Helper()
	m, err := machineOf(l.Arch)
	if err != nil {
		t.Fatal(err)
	}
	from := max(l.Base, f.Entry-nearby)
	to := min(l.Base+uint64(len(l.Code)), f.Entry+nearby)
	known := &callees{Finder: NewFinder(&l.Image), machine: m}
	memo := map[uint64]Callee{}
	x := &mutable{Function: f, image: l.Image, random: rand.New(rand.NewPCG(seed, 1))}
	x.image.Base, x.image.Code = from, slices.Clone(l.Code[from-l.Base:to-l.Base])
	x.calls = func(target uint64) Callee {
		c, ok := memo[target]
		if !ok {
			// __libc_message is only called with 1 here.
			c = known.about(target, &state{})
			n := numbers{pc: target, known: [4]bool{true}, value: [4]int64{1}}
			c.NoReturn = c.NoReturn || known.neverReturns(n)
			memo[target] = c
		}
		return c
	}
	called := map[uint64]bool{}
	x.image.Entered = func(addr uint64) bool {
		is, ok := called[addr]
		if !ok && addr != f.Entry {
			returns, _ := site.InternalCallers(l.Arch, l.Code, l.Base, addr)
			is = l.Entered(addr) || len(returns) > 0
			called[addr] = is
		}
		return is
	}
	x.image.Callee = func(addr uint64) (Callee, bool) {
		if c, ok := l.Callee(addr); ok {
			return c, true
		}
		if addr >= f.Entry && addr < f.Entry+nearby/8 {
			return Callee{}, false // of the function itself
		}
		c := x.calls(addr)
		return c, c != Callee{}
	}
	g, err := NewFinder(&x.image).interpret(m, &f)
	if err != nil {
		t.Fatal(err)
	}
	x.insns, x.inside = g.addresses(), map[uint64]bool{}
	for _, pc := range x.insns {
		x.inside[pc] = true
	}
	return x
}

// mutate changes one instruction and returns what undoes that.
func (x *mutable) mutate() (undo func()) {
	for {
		pc := x.insns[x.random.IntN(len(x.insns))]
		code := x.image.at(pc)
		inst, err := x86asm.Decode(code[:15], 64)
		if err != nil {
			continue
		}
		was := slices.Clone(code[:inst.Len])
		undo := func() { copy(code, was) }
		switch x.random.IntN(3) {
		case 0: // the instruction is dropped
			for i := range inst.Len {
				code[i] = 0x90
			}
			return undo
		case 1: // the branch is turned
			switch {
			case code[0]&0xf0 == 0x70:
				code[0] ^= 1
				return undo
			case code[0] == 0x0f && code[1]&0xf0 == 0x80:
				code[1] ^= 1
				return undo
			}
		default: // a register is renamed, or another operand changes
			if _, branches := inst.Args[0].(x86asm.Rel); branches {
				continue
			}
			code[x.random.IntN(inst.Len)] ^= 1 << x.random.IntN(6)
			if changed, err := x86asm.Decode(code[:15], 64); err == nil && changed.Op == inst.Op && changed.Len == inst.Len {
				return undo
			}
			undo()
		}
	}
}

// mutantCosts make plans worthwhile that would cost more than entry and return.
var mutantCosts = Costs{Break: 100, Return: 300, Step: 3500}

// outcome counts what mutated code does.
type outcome struct{ refused, covered, blocks, failures, other int }

// run runs the function with a plan. It returns false if the plan is wrong.
func (x *mutable) run(t complain, p *Plan, n *outcome) bool {
	t.Helper()
	c := &cpu{
		image: &x.image, random: x.random, pc: x.Entry, frame: map[uint64]byte{}, memory: map[uint64]uint64{},
		decode: map[uint64]x86asm.Inst{}, calls: x.calls,
	}
	for i := range c.regs {
		c.regs[i] = x.random.Uint64()
	}
	args := [2]uint64{c.value(), c.value()}
	c.regs[7], c.regs[6] = args[0], args[1]
	c.regs[4] = stackTop - 8
	c.store(c.regs[4], 8, returnsTo)
	call := &openCall{args: args}
	for range 2000 {
		if c.pc == returnsTo && c.regs[4] == stackTop {
			return x.judge(t, call, c.regs[0], n)
		}
		for i := range p.Sites {
			if s := &p.Sites[i]; s.Addr == c.pc {
				visit(call, s, c)
			}
		}
		if x.leaves(c) {
			// A jump to another function.
			if c.load(c.regs[4], 8) != returnsTo {
				break
			}
			first := c.regs[7]
			callee := x.calls(c.pc)
			if known, ok := x.image.Callee(c.pc); ok {
				callee = known
			}
			if callee.NoReturn {
				break
			}
			c.regs[4] += 8
			c.called(callee)
			if callee.First {
				c.regs[0] = first
			}
			return x.judge(t, call, c.regs[0], n)
		}
		if c.step() != nil {
			break
		}
	}
	n.other++
	return true
}

// leaves reports whether the function has jumped to another one.
func (x *mutable) leaves(c *cpu) bool {
	if c.image.at(c.pc) == nil {
		return true
	}
	start, _, ok := x.image.Bounds(c.pc)
	return ok && start == c.pc && !x.inside[c.pc] && c.regs[4] == stackTop-8
}

// visit is a hit of a site in the model.
func visit(call *openCall, s *Site, c *cpu) {
	if !s.When.Holds(false, c.flags, func(n uint8) uint64 { return c.regs[n] }) {
		return
	}
	read := func(p Place) uint64 {
		if p.Stack {
			return c.load(c.regs[4]+uint64(int64(p.Offset)), 8)
		}
		return c.regs[p.Reg]
	}
	x := report{site: s}
	for _, p := range s.Args {
		x.args = append(x.args, read(p))
	}
	switch s.Role {
	case Note:
		call.noted = x.args
		return
	case Return:
		call.armed = &x
		return
	case Finish:
		x.args = call.noted
	}
	if x.block = read(s.Block); x.block != 0 {
		call.reports = append(call.reports, x)
	}
}

// judge compares the reports with what the function returned.
func (x *mutable) judge(t complain, call *openCall, block uint64, n *outcome) bool {
	t.Helper()
	if call.armed != nil && block != 0 {
		call.armed.block = block
		call.reports = append(call.reports, *call.armed)
	}
	if block == 0 {
		n.failures++
		if len(call.reports) != 0 {
			t.Errorf("%s(%#x) failed and was reported: %+v", x.Name, call.args, call.reports)
		}
		return len(call.reports) == 0
	}
	n.blocks++
	if len(call.reports) != 1 {
		t.Errorf("%s(%#x) = %#x was reported %d times: %+v", x.Name, call.args, block, len(call.reports), call.reports)
		return false
	}
	r := &call.reports[0]
	right := r.block == block && len(r.args) == len(x.Args)
	product := call.args[x.Factors[0]] * call.args[x.Factors[1]]
	for i, arg := range r.args {
		right = right && (arg == call.args[x.Args[i]] || x.Factors[0] != x.Factors[1] && arg == product)
	}
	if !right {
		t.Errorf("%s(%#x) = %#x at %#x: %+v", x.Name, call.args, block, r.site.Addr, r)
	}
	return right
}

// TestMutants changes the code of allocators at random. The plan of the changed code must be
// right, as a model of the processor sees it, or there must be none.
func TestMutants(t *testing.T) {
	mutants, runs := 2600, 25
	if !testutil.Sweep(t) {
		mutants = 100
	}
	total := outcome{}
	for i, names := range [][]string{{"malloc", "calloc"}, {"malloc"}, {"malloc"}} {
		l := installed(t, here[i])
		for _, f := range functions {
			if !slices.Contains(names, f.Name) {
				continue
			}
			f.Entry = l.exports[f.Name]
			x := newMutable(t, l, f, uint64(i))
			n := outcome{}
			x.attempt(t, runs*10, &n)
			if n.covered != 1 || n.blocks < runs {
				_, err := Find(&x.image, f, mutantCosts)
				t.Errorf("%s of %s, unchanged: %+v, %v", f.Name, here[i], n, err)
				continue
			}
			n = outcome{}
			for range mutants {
				undo := x.mutate()
				again := func() {}
				if x.random.IntN(3) == 0 {
					again = x.mutate()
				}
				x.attempt(t, runs, &n)
				again()
				undo()
				if t.Failed() {
					return
				}
			}
			t.Logf("%s of %s: %+v", f.Name, here[i], n)
			x.mistakes(t)
			total.refused, total.covered, total.blocks = total.refused+n.refused, total.covered+n.covered, total.blocks+n.blocks
		}
	}
	if total.refused+total.covered < 4*mutants || total.covered < mutants || total.blocks < mutants {
		t.Errorf("too little was tried: %+v", total)
	}
}

// attempt plans the code as it is, and runs it.
func (x *mutable) attempt(t *testing.T, runs int, n *outcome) {
	t.Helper()
	p, err := Find(&x.image, x.Function, mutantCosts)
	if err != nil {
		n.refused++
		return
	}
	n.covered++
	for range runs {
		if !x.run(t, p, n) {
			for _, s := range p.Sites {
				t.Logf("%#x %s: %v when %v, arguments %+v, block %+v", s.Addr, s.Insn, s.Role, s.When, s.Args, s.Block)
			}
			for _, pc := range x.insns {
				t.Logf("%#x %s", pc, site.Text(site.AMD64, x.image.at(pc), pc))
			}
			return
		}
	}
}

// mistakes runs changed code with the plan of the unchanged code, which the model must find wrong.
func (x *mutable) mistakes(t *testing.T) {
	t.Helper()
	p, err := Find(&x.image, x.Function, mutantCosts)
	if err != nil {
		t.Fatal(err)
	}
	const mutants, runs = 300, 25
	found := 0
	for range mutants {
		undo := x.mutate()
		for range runs {
			if !x.run(discard{}, p, &outcome{}) {
				found++
				break
			}
		}
		undo()
	}
	t.Logf("%s: with the plan of other code, %d of %d are wrong", x.Name, found, mutants)
	if found < mutants/100 {
		t.Errorf("%s: the model finds only %d of %d plans of other code wrong", x.Name, found, mutants)
	}
}

// complain is the part of a test that reports errors.
type complain interface {
	Helper()
	Errorf(format string, args ...any)
}

// discard ignores errors.
type discard struct{}

func (discard) Helper()               {}
func (discard) Errorf(string, ...any) {}
