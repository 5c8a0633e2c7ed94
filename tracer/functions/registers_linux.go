package functions

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// PLACE_SP and PLACE_PC of bpf/functions.h.
const (
	placeSP = 32
	placePC = 33
)

var (
	wideNames   = []string{"rax", "rcx", "rdx", "rbx", "", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}
	narrowNames = []string{"eax", "ecx", "edx", "ebx", "", "ebp", "esi", "edi"}
)

// names returns the registers by their numbers in instructions; registers with numbers of their
// own are empty.
func names(narrow bool) (all []string, sp, pc string) {
	switch {
	case narrow:
		return narrowNames, "esp", "eip"
	case runtime.GOARCH == "arm64":
		for i := range 31 {
			all = append(all, fmt.Sprintf("x%d", i))
		}
		return all, "sp", "pc"
	}
	return wideNames, "rsp", "rip"
}

// register returns the programs' number for a register.
func register(name string, narrow bool) (number uint8, ok bool) {
	all, sp, pc := names(narrow)
	switch name {
	case "":
		return 0, false
	case sp:
		return placeSP, true
	case pc:
		return placePC, true
	}
	i := slices.Index(all, name)
	return uint8(i), i >= 0
}

func registerNames(narrow bool) string {
	all, sp, pc := names(narrow)
	all = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "" })
	return strings.Join(append(all, sp, pc), " ")
}
