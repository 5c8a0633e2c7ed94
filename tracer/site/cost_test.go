package site

import "testing"

// TestCostAMD64 compares with the kernel's classes, by instruction: Linux,
// arch/x86/kernel/uprobes.c.
func TestCostAMD64(t *testing.T) {
	for _, c := range []struct {
		code string
		pc   uint64
		old  Cost // on every kernel
		all  Cost // with Nops and Nop5
	}{
		{"50", 0, Emulated, Emulated}, // push
		{"57", 0, Emulated, Emulated},
		{"41 50", 0, Emulated, Emulated},
		{"41 57", 0, Emulated, Emulated},
		{"40 55", 0, SingleStep, SingleStep}, // with needless prefixes
		{"48 55", 0, SingleStep, SingleStep},
		{"66 50", 0, SingleStep, SingleStep},
		{"66 41 50", 0, SingleStep, SingleStep},
		{"6a 10", 0, SingleStep, SingleStep}, // push of an immediate, of memory
		{"ff 75 08", 0, SingleStep, SingleStep},
		{"eb 00", 0, Emulated, Emulated}, // jumps
		{"e9 00 00 00 00", 0, Emulated, Emulated},
		{"f2 e9 00 00 00 00", 0, Emulated, Emulated},
		{"66 e9 00 00 00 00", 0, Refused, Refused},
		{"70 00", 0, Emulated, Emulated},
		{"7f 00", 0, Emulated, Emulated},
		{"f2 75 00", 0, Emulated, Emulated},
		{"2e 75 00", 0, Refused, Refused}, // branch hint
		{"0f 80 00 00 00 00", 0, Emulated, Emulated},
		{"0f 8f 00 00 00 00", 0, Emulated, Emulated},
		{"66 0f 84 00 00 00 00", 0, Refused, Refused},
		{"e8 00 00 00 00", 0, Emulated, Emulated}, // calls
		{"67 e8 00 00 00 00", 0, Emulated, Emulated},
		{"e3 00", 0, SingleStep, SingleStep}, // jrcxz, loop
		{"e2 00", 0, SingleStep, SingleStep},
		{"ff 25 00 00 00 00", 0, SingleStep, SingleStep},
		{"3e ff e0", 0, Refused, Refused}, // notrack jmp *%rax
		{"90", 0, Emulated, Emulated},     // nops
		{"66 90", 0, Refused, Emulated},
		{"64 90", 0, Emulated, Emulated}, // other prefixes change nothing
		{"f3 90", 0, SingleStep, SingleStep},
		{"48 90", 0, SingleStep, SingleStep},
		{"41 90", 0, Refused, Refused},
		{"49 90", 0, Refused, Refused},
		{"0f 1f 00", 0, SingleStep, Emulated},
		{"66 0f 1f 44 00 00", 0, SingleStep, Emulated},
		{"66 2e 0f 1f 84 00 00 00 00 00", 0, Refused, Refused},
		{"0f 1f 44 00 00", 0, SingleStep, NopOptimised},
		{"0f 1f 44 00 00", 0x1ffb, SingleStep, NopOptimised},
		{"0f 1f 44 00 00", 0x1ffc, SingleStep, Emulated}, // across pages
		{"f3 0f 1e fa", 0, SingleStep, SingleStep},
		{"48 85 ff", 0, SingleStep, SingleStep},
		{"c3", 0, SingleStep, SingleStep},
		{"64 48 8b 04 25 28 00 00 00", 0, SingleStep, SingleStep},
		{"f3 a4", 0, SingleStep, SingleStep},
		{"f0 48 0f b1 0f", 0, Refused, Refused}, // lock
		{"0f 05", 0, Refused, Refused},          // syscall
		{"0f 0b", 0, Refused, Refused},
		{"cc", 0, Refused, Refused},
		{"cd 80", 0, Refused, Refused},
		{"f4", 0, Refused, Refused},
		{"8e d0", 0, Refused, Refused}, // mov %eax,%ss
		{"8e d8", 0, SingleStep, SingleStep},
		{"c5 f8 77", 0, Refused, Refused}, // VEX, EVEX
		{"62 f1 fe 48 6f 06", 0, Refused, Refused},
	} {
		checkCost(t, AMD64, c.code, c.pc, c.old, c.all)
	}
}

// checkCost compares the class of an instruction at pc, on every kernel and on one with Nops and
// Nop5.
func checkCost(t *testing.T, arch Arch, hex string, pc uint64, old, all Cost) {
	t.Helper()
	b := code(t, hex)
	for _, x := range []struct {
		o    Options
		want Cost
	}{
		{Options{Arch: arch}, old},
		{Options{Arch: arch, Nops: true, Nop5: true}, all},
	} {
		m, err := machineOf(x.o)
		if err != nil {
			t.Fatal(err)
		}
		in := m.decode(b, pc)
		if in.cost != x.want {
			t.Errorf("%s with %+v: %v, want %v", hex, x.o, in.cost, x.want)
		}
		if in.size != len(b) {
			t.Errorf("%s: size %d, want %d", hex, in.size, len(b))
		}
	}
}

// TestCostI386 compares with the kernel's classes for 32-bit programs. Those that differ from
// x86-64 come first.
func TestCostI386(t *testing.T) {
	for _, c := range []struct {
		code string
		old  Cost // on every kernel
		all  Cost // with Nops and Nop5
	}{
		{"40", SingleStep, SingleStep}, // inc, dec: no prefixes
		{"4f", SingleStep, SingleStep},
		{"0f 1f 44 00 00", SingleStep, Emulated}, // never optimised
		{"62 01", SingleStep, SingleStep},        // bound
		{"c4 08", SingleStep, SingleStep},        // les, lds
		{"c5 08", SingleStep, SingleStep},
		{"06", SingleStep, SingleStep}, // push, pop of segment registers
		{"1e", SingleStep, SingleStep},
		{"07", Refused, Refused},
		{"17", Refused, Refused},
		{"1f", Refused, Refused},
		{"60", SingleStep, SingleStep},
		{"61", SingleStep, SingleStep},
		{"27", SingleStep, SingleStep}, // daa
		{"d4 0a", SingleStep, SingleStep},
		{"a1 00 00 00 00", SingleStep, SingleStep},
		{"ce", Refused, Refused},                // into
		{"f3 0f 1e fb", SingleStep, SingleStep}, // endbr32
		{"66 e9 00 00", Refused, Refused},       // targets of 16 bits
		{"66 e8 00 00", Refused, Refused},
		{"66 0f 84 00 00", Refused, Refused},
		{"66 74 00", Refused, Refused},
		{"50", Emulated, Emulated}, // as in 64-bit code
		{"57", Emulated, Emulated},
		{"66 50", SingleStep, SingleStep},
		{"6a 10", SingleStep, SingleStep},
		{"68 00 00 00 00", SingleStep, SingleStep},
		{"ff 75 08", SingleStep, SingleStep},
		{"eb 00", Emulated, Emulated},
		{"e9 00 00 00 00", Emulated, Emulated},
		{"e8 00 00 00 00", Emulated, Emulated},
		{"70 00", Emulated, Emulated},
		{"f2 75 00", Emulated, Emulated},
		{"2e 75 00", Refused, Refused},
		{"0f 8f 00 00 00 00", Emulated, Emulated},
		{"e3 00", SingleStep, SingleStep},
		{"90", Emulated, Emulated},
		{"66 90", Refused, Emulated},
		{"f3 90", SingleStep, SingleStep},
		{"ff 25 00 00 00 00", SingleStep, SingleStep},
		{"3e ff e0", Refused, Refused},
		{"c3", SingleStep, SingleStep},
		{"c2 04 00", SingleStep, SingleStep},
		{"65 a1 14 00 00 00", SingleStep, SingleStep},
		{"8b 44 24 04", SingleStep, SingleStep},
		{"f0 0f b1 0f", Refused, Refused},
		{"cd 80", Refused, Refused},
		{"0f 34", Refused, Refused},
		{"8e d0", Refused, Refused},
		{"c5 f8 77", Refused, Refused},
		{"62 f1 fe 48 6f 06", Refused, Refused},
	} {
		checkCost(t, I386, c.code, 0, c.old, c.all)
	}
}

// TestCostARM64 compares with the kernel's classes, by instruction: Linux,
// arch/arm64/kernel/probes/decode-insn.c.
func TestCostARM64(t *testing.T) {
	for _, c := range []struct {
		word     string // bytes in memory
		name     string
		old, all Cost
	}{
		{"00 00 00 14", "b", Emulated, Emulated},
		{"00 00 00 94", "bl", Emulated, Emulated},
		{"00 00 00 54", "b.eq", Emulated, Emulated},
		{"10 00 00 54", "bc.eq", Refused, Refused},
		{"00 00 00 34", "cbz w0", Emulated, Emulated},
		{"00 00 00 b5", "cbnz x0", Emulated, Emulated},
		{"00 00 00 36", "tbz", Emulated, Emulated},
		{"00 00 f8 b7", "tbnz", Emulated, Emulated},
		{"00 00 00 10", "adr", Emulated, Emulated},
		{"15 0a 00 90", "adrp", Emulated, Emulated},
		{"c0 03 5f d6", "ret", Emulated, Emulated},
		{"00 00 1f d6", "br x0", Emulated, Emulated},
		{"00 00 3f d6", "blr x0", Emulated, Emulated},
		{"ff 0b 5f d6", "retaa", Refused, Refused},
		{"1f 08 1f d7", "braa x0, sp", Refused, Refused},
		{"1f 20 03 d5", "nop", SingleStep, Emulated},
		{"5f 24 03 d5", "bti c", SingleStep, SingleStep},
		{"3f 23 03 d5", "paciasp", SingleStep, SingleStep},
		{"bf 23 03 d5", "autiasp", Refused, Refused},
		{"3f 20 03 d5", "yield", Refused, Refused},
		{"00 00 00 58", "ldr x0, literal", Refused, Refused},
		{"00 00 00 98", "ldrsw x0, literal", Refused, Refused},
		{"fd 7b bf a9", "stp x29, x30, [sp, #-16]!", SingleStep, SingleStep},
		{"e0 03 01 aa", "mov x0, x1", SingleStep, SingleStep},
		{"20 7c 5f c8", "ldxr x0, [x1]", Refused, Refused},
		{"01 00 00 d4", "svc #0", Refused, Refused},
		{"42 d0 3b d5", "mrs x2, tpidr_el0", SingleStep, SingleStep},
		{"42 d0 1b d5", "msr tpidr_el0, x2", Refused, Refused},
		{"9f 3b 03 d5", "dmb ish", SingleStep, SingleStep},
	} {
		b := code(t, c.word)
		if got := (arm64{Options{}}).decode(b, 0x1000).cost; got != c.old {
			t.Errorf("%s: %v, want %v", c.name, got, c.old)
		}
		if got := (arm64{Options{Nops: true, Nop5: true}}).decode(b, 0x1000).cost; got != c.all {
			t.Errorf("%s with all nops: %v, want %v", c.name, got, c.all)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		AMD64.String():        "amd64",
		ARM64.String():        "arm64",
		I386.String():         "386",
		Arch(9).String():      "arch(9)",
		Refused.String():      "refused",
		SingleStep.String():   "single-step",
		Emulated.String():     "emulated",
		NopOptimised.String(): "nop-optimised",
		Cost(9).String():      "cost(9)",
	} {
		if got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}
