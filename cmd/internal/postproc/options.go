// Package postproc has the options of rtrace postproc. rtrace-bpf parses them too, for
// piping a trace through it.
package postproc

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
)

// Options are the parsed command line.
type Options struct {
	Input, Output   string
	Format, Sort    string
	Leaks, Compress bool
	Resolve, NoArgs bool
	Depth           int
	Legacy, Quiet   bool
	Filters         Filters
}

// Filters select calls.
type Filters struct {
	Resources, Contexts string
	Address             string
	Include, Exclude    string
}

// Declare declares the flags.
func (o *Options) Declare(f *flags.Groups) {
	in := f.Group("Input and output")
	in.StringVarP(&o.Input, "input-file", "i", "", "read `FILE` (default: standard input, also with -)")
	in.StringVarP(&o.Output, "output-dir", "o", "",
		"write `DIR`/PID-N.rtrace.txt. A missing DIR that ends with / is created; a DIR that is not a directory is the output file (default: standard output)")
	in.VarP(flags.Word(&o.Format, "text", "text", "sprtrace"), "format", "f", "write `FORMAT`: text or sprtrace (the binary form, DIR/PID-N.rtrace)")
	in.BoolP("text", "t", false, "write text (the default)")
	in.BoolVarP(&o.Quiet, "quiet", "q", false, "print no warnings")
	what := f.Group("What to print")
	what.BoolVarP(&o.Leaks, "filter-leaks", "l", false, "print only allocations that nothing frees, and a summary")
	what.BoolVarP(&o.Compress, "compress", "c", false, "group calls with the same stack, with their number and size")
	what.VarP(flags.Word(&o.Sort, "", "size", "size-asc", "count", "count-asc"), "sort", "s", "with -c: `ORDER` of the stacks: size, size-asc, count or count-asc (default: size-asc)")
	what.BoolVarP(&o.Resolve, "resolve", "r", false, "name the functions of the stacks")
	what.VarP(flags.Number(&o.Depth, -1, -1, flags.Unbounded), "backtrace-depth", "b", "print the innermost `N` frames of a stack")
	what.BoolVarP(&o.NoArgs, "remove-args", "a", false, "leave out arguments of calls (--legacy keeps them)")
	what.BoolVar(&o.Legacy, "legacy", false,
		"print the same bytes as sp-rtrace-postproc, including its errors")
	o.Filters.declare(f)
}

func (c *Filters) declare(groups *flags.Groups) {
	f := groups.Group("Which calls")
	f.StringVarP(&c.Resources, "resource", "R", "", "only calls of the resources in `MASK`, the sum of their hexadecimal numbers as printed")
	f.StringVar(&c.Address, "call-address", "", "only calls with a frame in `MODULE:START+SIZE`: part of a mapping's path, the address of code in that file and its length, "+
		"both hexadecimal")
	f.StringVar(&c.Include, "include", "", "only calls whose numbers are in `FILE`, one per line")
	f.StringVar(&c.Exclude, "exclude", "", "only calls whose numbers are not in `FILE`; --include takes precedence")
	f.StringVarP(&c.Contexts, "context", "C", "", "only calls in one of the contexts of the hexadecimal `MASK`; 0 is calls without context")
}

// CheckPiped returns nil if a run with these arguments reads standard input and writes
// standard output, and otherwise the reason.
func CheckPiped(args []string) error {
	var o Options
	var f flags.Groups
	o.Declare(&f)
	files, err := f.Parse("rtrace postproc", args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return errors.New("-P does not print help; run rtrace postproc --help")
	case err != nil:
		return err
	case o.Input != "" || len(files) > 0:
		return fmt.Errorf("%s is an input file, but the input is the trace", append(files, o.Input)[0])
	case o.Output != "":
		return fmt.Errorf("%s is an output, which -o of rtrace-bpf selects", o.Output)
	}
	return nil
}
