package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/tracer/plan"
)

// formatFlags select the format of traces, and its variants.
type formatFlags struct {
	name     string
	dialect  string // of sprtrace
	mtrc     mtrcFlags
	swap     swapFlags
	nettrace nettraceFlags
}

// mtrcFlags select how MTRC is written.
type mtrcFlags struct {
	names   string
	callers string
	legacy  bool
	words   int // bytes; 0 for those of the process
}

// declare declares the flag for the format in output, and those for its variants in f.
func (o *formatFlags) declare(output, f *pflag.FlagSet) {
	output.Var(flags.Word(&o.name, "", encoder.FormatNames()...), "format", "write `FORMAT`: "+encoder.Names()+" (default "+encoder.Default+", with --dotnet nettrace)")
	f.Var(flags.Word(&o.dialect, "wire", "wire", "document"), "rtrace-dialect", "write sprtrace in this `DIALECT`: wire, as the real tools do, or document, as the protocol text specifies")
	o.mtrc.declare(f)
	o.swap.declare(f)
	o.nettrace.declare(f)
}

func (m *mtrcFlags) declare(f *pflag.FlagSet) {
	f.Var(flags.Word(&m.names, "on", "on", "off"), "mtrc-names", "name the function, source file and line of each call in mtrc: `WHETHER` is on or off")
	f.Var(flags.Word(&m.callers, "program", resolve.Policies()...), "mtrc-callers", "take these from the innermost frame of `WHAT`: program (outside the C and C++ libraries, if there is one) or innermost (of any file)")
	f.BoolVar(&m.legacy, "mtrc-legacy", false, "write mtrc for the unmodified 64-bit mptrace, with addresses and sizes of 31 bits")
	f.IntVar(&m.words, "mtrc-words", 0, "write the header of mtrc in words of `N` bytes: 4 for a 32-bit mptrace, or 8 (default: the size of pointers of the process)")
}

// checkValues returns an error if a variant of a format does not exist.
func (o *formatFlags) checkValues(*config) error {
	if n := o.mtrc.words; n != 0 && n != 4 && n != 8 {
		return fmt.Errorf("--mtrc-words %d: write 4 or 8", n)
	}
	return o.nettrace.checkValues()
}

// check returns an error if flags about a format do not go with others.
func (o *formatFlags) check(c *config) error { return o.swap.check(c) }

// set sets the options that formats need.
func (o *formatFlags) set(to *plan.Options) error {
	to.HeapGrowth = to.HeapGrowth || o.isMTRC()
	return o.swap.set(to)
}

// isMTRC reports whether traces are written for mptrace.
func (o *formatFlags) isMTRC() bool { return o.name == "mtrc" }

// isText reports whether traces are texts for people.
func (o *formatFlags) isText() bool { return o.name == "text" || o.name == "jsonl" }

// encoding returns the options of the encoder.
func (c *config) encoding() encoder.Options {
	o := &c.format
	return encoder.Options{
		SprtraceDialect: o.dialect, BacktraceAll: c.stacks.all, MTRCLegacy: o.mtrc.legacy, MTRCWords: o.mtrc.words,
		SwapDialect: o.swap.dialect, SwapTime: o.swap.time, SwapNoStacks: o.swap.noStacks,
		Nettrace: o.nettrace.encoding(),
	}
}

// names reports whether the trace contains the names of callers.
func (c *config) names() bool {
	return c.format.isMTRC() && c.format.mtrc.names == "on" && c.stacks.any()
}
