package site

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// line is one instruction of objdump's output.
type line struct {
	addr     uint64
	prefix   string
	mnemonic string
	operands []string
}

func (x line) bad() bool { return x.mnemonic == "(bad)" || x.mnemonic == ".byte" }

// target returns the address that a branch names.
func (x line) target() (uint64, bool) {
	m := x.mnemonic
	branch := strings.HasPrefix(m, "j") || strings.HasPrefix(m, "call") || strings.HasPrefix(m, "loop")
	if !branch || len(x.operands) != 1 {
		return 0, false
	}
	first, _, _ := strings.Cut(x.operands[0], " ")
	to, err := strconv.ParseUint(first, 16, 64)
	return to, err == nil
}

// branchIn parses the verdict on a candidate that was rejected because of a branch.
func branchIn(verdict string) (from uint64, to int, ok bool) {
	n, _ := fmt.Sscanf(verdict, "branch at 0x%x leads to +%d", &from, &to)
	return from, to, n == 2
}

func parseObjdump(out []byte) []line {
	var lines []line
	for l := range bytes.Lines(out) {
		addr, text, ok := strings.Cut(strings.TrimSpace(string(l)), ":\t")
		if !ok {
			continue
		}
		a, err := strconv.ParseUint(addr, 16, 64)
		if err != nil {
			continue
		}
		text, _, _ = strings.Cut(text, "#")
		x := line{addr: a}
		for {
			var m string
			m, text, _ = strings.Cut(strings.TrimSpace(text), " ")
			switch m {
			case "bnd", "notrack", "rep", "repz", "repnz", "lock", "cs", "ds", "es", "fs", "ss", "data16", "addr32",
				"rex.W", "rex", "xacquire", "xrelease":
				x.prefix = m
				if text != "" {
					continue
				}
			}
			x.mnemonic = m
			break
		}
		x.operands = splitOperands(strings.TrimSpace(text))
		lines = append(lines, x)
	}
	return lines
}

// splitOperands splits at the commas outside of parentheses.
func splitOperands(s string) []string {
	var ops []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				ops = append(ops, s[start:i])
				start = i + 1
			}
		}
	}
	if start < len(s) {
		ops = append(ops, s[start:])
	}
	return ops
}
