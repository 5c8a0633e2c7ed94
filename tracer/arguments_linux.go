package tracer

// arguments lists the arguments that a probe must read.
func (f *Function) arguments() []int {
	args := f.row.arguments()
	if f.tells && f.row.alignment != 0 {
		args = append(args, f.row.alignment-1)
	}
	return args
}

// argumentsOf says which arguments the calls of a function have.
type argumentsOf struct {
	operation probeOperation
	product   bool // the size is one of two factors
}

// functionArguments lists that by the number that events carry; nil if arguments are not
// asked for.
func (p *Plan) functionArguments() []argumentsOf {
	if !p.options.Args {
		return nil
	}
	var out []argumentsOf
	for _, list := range [][]Function{p.functions, p.operators} {
		for i := range list {
			out = append(out, argumentsOf{list[i].row.operation, list[i].row.count != none})
		}
	}
	return out
}
