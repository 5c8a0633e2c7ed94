package plan

import (
	"rtrace-bpf/tracer/object"
)

// arguments lists the arguments that a probe must read.
func (f *Function) arguments() []int {
	args := f.row.arguments()
	if f.WholeArguments && f.row.alignment != 0 {
		args = append(args, f.row.alignment-1)
	}
	return args
}

// ArgumentsOf says which arguments the calls of a function have.
type ArgumentsOf struct {
	Operation object.ProbeOperation
	Product   bool // the size is one of two factors
}

// FunctionArguments lists that by the number that events carry; nil if arguments are not
// asked for.
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
