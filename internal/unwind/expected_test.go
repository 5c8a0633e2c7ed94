package unwind

import (
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/testutil"
)

// registers holds the names that readelf has for the registers of a machine.
type registers struct {
	sp, fp string
	word   int64
	link   bool     // the return address may be in a register
	all    []string // by number
}

var registersOf = map[elf.Machine]*registers{
	elf.EM_AARCH64: {sp: "sp", fp: "x29", word: 8, link: true},
	elf.EM_X86_64: {sp: "rsp", fp: "rbp", word: 8, all: []string{
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
	}},
	elf.EM_386: {sp: "esp", fp: "ebp", word: 4, all: []string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"}},
}

// split splits "rsp+8".
func split(s string) (reg string, n int64) {
	at := strings.IndexAny(s, "+-")
	if at < 0 {
		return s, 0
	}
	n, _ = strconv.ParseInt(s[at:], 10, 64)
	return s[:at], n
}

// expected returns the texts that the rule for a row may have, according to readelf's output
// for the row. If a function has several expressions, the output does not show which one
// belongs to the row.
func expected(reg *registers, f *testutil.Frame, row testutil.FrameRow) []string {
	ra := row.Registers["ra"]
	switch {
	case strings.Contains(f.CIE, "S"):
		return []string{expectedSignal(f, row)}
	case !reg.link && ra == "u":
		return []string{"end"}
	case !reg.link && ra != fmt.Sprintf("c-%d", reg.word):
		return []string{"unsupported"}
	case row.Registers[reg.sp] != "" && row.Registers[reg.sp] != "u":
		return []string{"unsupported"}
	}
	var all []string
	for _, cfa := range expectedCFA(f, reg, row.CFA) {
		if cfa == "unsupported" || strings.HasPrefix(cfa, "cfa=plt") {
			all = append(all, cfa)
			continue
		}
		based := strings.HasPrefix(cfa, "cfa=fp") || strings.HasPrefix(cfa, "cfa=*(fp")
		for _, fp := range expectedFP(f, based, row.Registers[reg.fp]) {
			all = append(all, cfa+fp+expectedRA(reg.link, row.Registers[reg.fp], ra))
		}
	}
	return all
}

// oldSignal is readelf's output for the old signal frame.
const oldSignal = "DW_CFA_expression: r8 (eip) (DW_OP_breg4 (esp): 60)"

// expectedSignal distinguishes the signal frames of i386 by the place of the interrupted eip:
// 56 in struct sigcontext, which is 4 above the stack pointer in the old one. After the first
// instruction the stack pointer has moved.
func expectedSignal(f *testutil.Frame, row testutil.FrameRow) string {
	switch {
	case !slices.Contains(f.Expressions, oldSignal):
		return "signal"
	case row.Start == f.Start:
		return "old signal"
	}
	return "unsupported"
}

var (
	cfaExpression = regexp.MustCompile(`^DW_CFA_def_cfa_expression \(DW_OP_breg[4-7] \([re](sp|bp)\): (-?\d+); DW_OP_deref(?:; DW_OP_plus_uconst: (\d+))?\)$`)
	pltExpression = regexp.MustCompile(`^DW_CFA_def_cfa_expression \((?:DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\)|DW_OP_breg4 \(esp\): 4; DW_OP_breg8 \(eip\)): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit(\d+); DW_OP_ge; DW_OP_lit[23]; DW_OP_shl; DW_OP_plus\)$`)
	fpExpression  = regexp.MustCompile(`^DW_CFA_expression: r[56] \([re]bp\) \(DW_OP_breg[56] \([re]bp\): (-?\d+)\)$`)
	ofFP          = regexp.MustCompile(`^DW_CFA_expression: r[56] \([re]bp\) `)
)

func expectedCFA(f *testutil.Frame, reg *registers, cfa string) (all []string) {
	if cfa != "exp" {
		base, n := split(cfa)
		switch {
		case n%reg.word != 0:
			return []string{"unsupported"}
		case base == reg.sp:
			return []string{fmt.Sprintf("cfa=sp%+d", n)}
		case base == reg.fp:
			return []string{fmt.Sprintf("cfa=fp%+d", n)}
		case base[0] == 'x':
			return []string{fmt.Sprintf("cfa=r%s%+d", base[1:], n)}
		}
		return []string{fmt.Sprintf("cfa=r%d%+d", slices.Index(reg.all, base), n)}
	}
	for _, x := range f.Expressions {
		if m := cfaExpression.FindStringSubmatch(x); m != nil {
			name := map[string]string{"sp": "sp", "bp": "fp"}[m[1]]
			at, _ := strconv.Atoi(m[2])
			add, _ := strconv.Atoi("0" + m[3])
			all = append(all, fmt.Sprintf("cfa=*(%s%+d)%+d", name, at, add))
		} else if m := pltExpression.FindStringSubmatch(x); m != nil {
			all = append(all, "cfa=plt("+m[1]+")")
		} else if strings.HasPrefix(x, "DW_CFA_def_cfa_expression") {
			all = append(all, "unsupported")
		}
	}
	return all
}

func expectedFP(f *testutil.Frame, based bool, rule string) (all []string) {
	slot, saved := strings.CutPrefix(rule, "c")
	switch {
	case saved:
		return []string{" fp=[cfa" + slot + "]"}
	case (rule == "" || rule == "u" || rule == "s") && !based:
		return []string{""}
	case rule != "exp":
		return []string{" fp=?"}
	}
	for _, x := range f.Expressions {
		if m := fpExpression.FindStringSubmatch(x); m != nil {
			at, _ := strconv.Atoi(m[1])
			all = append(all, fmt.Sprintf(" fp=[fp%+d]", at))
		} else if ofFP.MatchString(x) {
			all = append(all, " fp=?")
		}
	}
	return all
}

// expectedRA returns the text for the return address; link: the machine has a link register.
func expectedRA(link bool, fp, ra string) string {
	if !link {
		return ""
	}
	if ra == "" || ra == "u" {
		return " ra=link"
	}
	_, n := split(ra)
	if strings.HasPrefix(fp, "c") {
		return " ra=after fp" // compilers save them as a pair
	}
	return fmt.Sprintf(" ra=[cfa%+d]", n)
}
