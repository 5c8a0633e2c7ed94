package plan

import (
	"rtrace-bpf/tracer/object"
)

// arguments lists the arguments that the function's probe must read.
func (f *Function) arguments() []int {
	args := f.row.arguments()
	if f.wholeArguments && f.row.alignment != 0 {
		args = append(args, f.row.alignment-1)
	}
	return args
}

// ArgumentsOf describes the arguments that events of a function have.
type ArgumentsOf struct {
	Operation object.ProbeOperation
	Product   bool // the requested bytes are a product of two arguments
}

// FunctionArguments lists the arguments of each function and operator, by the number that
// events carry. It is nil without Options.Args.
func (p *Plan) FunctionArguments() []ArgumentsOf {
	if !p.Options.Args {
		return nil
	}
	var out []ArgumentsOf
	for _, list := range [][]Function{p.functions, p.operators} {
		for i := range list {
			out = append(out, ArgumentsOf{list[i].row.operation, list[i].row.count != none})
		}
	}
	return out
}
