package tracer

import (
	"strconv"

	"rtrace-bpf/trace"
)

// callArguments returns the arguments of a call, as the functions of C call them. The caller owns
// them. Of a realloc that ends as a free, or of which the free is told by itself, there is
// the old block alone.
func callArguments(a argumentsOf, e *event, op trace.Op) []trace.Arg {
	var all []trace.Arg
	number := func(name string, value uint64) {
		all = append(all, trace.Arg{Name: name, Value: strconv.FormatUint(value, 10)})
	}
	block := func(addr uint64) {
		all = append(all, trace.Arg{Name: "ptr", Value: "0x" + strconv.FormatUint(addr, 16)})
	}
	if op == trace.OpFree {
		block(e.addr)
		return all
	}
	if a.operation == opRealloc {
		block(e.old)
	}
	switch told := uint64(e.argument); probeTold(e.told) {
	case probeToldTOLD_COUNT:
		number("nmemb", told)
		number("size", e.size/max(told, 1))
	case probeToldTOLD_ELEMENT:
		number("nmemb", e.size/max(told, 1))
		number("size", told)
	case probeToldTOLD_ALIGNMENT:
		number("alignment", told)
		number("size", e.size)
	default:
		if !a.product { // else neither of the factors is known
			number("size", e.size)
		}
	}
	return all
}
