package record

import (
	"strconv"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// callArguments returns the arguments of a call, as the functions of C call them. The caller owns
// them. Of a realloc that ends as a free, or of which the free is told by itself, there is
// the old block alone.
func callArguments(a plan.ArgumentsOf, e *order.Event, op trace.Op) []trace.Arg {
	var all []trace.Arg
	number := func(name string, value uint64) {
		all = append(all, trace.Arg{Name: name, Value: strconv.FormatUint(value, 10)})
	}
	block := func(addr uint64) {
		all = append(all, trace.Arg{Name: "ptr", Value: "0x" + strconv.FormatUint(addr, 16)})
	}
	if op == trace.OpFree {
		block(e.Addr)
		return all
	}
	if a.Operation == plan.OpRealloc {
		block(e.Old)
	}
	switch told := uint64(e.Argument); object.ProbeTold(e.ArgumentKind) {
	case object.ProbeToldTOLD_COUNT:
		number("nmemb", told)
		number("size", e.Size/max(told, 1))
	case object.ProbeToldTOLD_ELEMENT:
		number("nmemb", e.Size/max(told, 1))
		number("size", told)
	case object.ProbeToldTOLD_ALIGNMENT:
		number("alignment", told)
		number("size", e.Size)
	default:
		if !a.Product { // else neither of the factors is known
			number("size", e.Size)
		}
	}
	return all
}
