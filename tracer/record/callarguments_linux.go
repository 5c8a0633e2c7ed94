package record

import (
	"strconv"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// callArguments returns the arguments of a call, by the names that C gives them. The
// caller owns them. A free has only the block; so has a realloc that ends as a free, or
// whose free is recorded separately.
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
	switch argument := uint64(e.Argument); object.ProbeArgumentKind(e.ArgumentKind) {
	case object.ProbeArgumentKindARGUMENT_COUNT:
		number("nmemb", argument)
		number("size", e.Size/max(argument, 1))
	case object.ProbeArgumentKindARGUMENT_ELEMENT:
		number("nmemb", e.Size/max(argument, 1))
		number("size", argument)
	case object.ProbeArgumentKindARGUMENT_ALIGNMENT:
		number("alignment", argument)
		number("size", e.Size)
	default:
		if !a.Product { // otherwise neither factor is known
			number("size", e.Size)
		}
	}
	return all
}
