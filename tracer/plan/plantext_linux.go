package plan

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
)

// WriteText prints the plan, for rtrace-bpf plan: the allocators, the mechanisms, and each function
// with its file, its site and the cost of a hit.
func (p *Plan) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "process %d (%s)\n", p.Target.PID, printable.Name(p.Target.Name))
	p.writeAllocators(w)
	fmt.Fprintf(w, "attach %s, sites known by %s, thread state in %s, %s\n", p.mechanism, p.siteName(), p.stateName(), p.bufferName())
	fmt.Fprintf(w, "stacks %s\n\n", p.stackText())
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "FUNCTION\tFILE\tADDRESS\tSITE\tINSTRUCTION\tCOST\tPROBES\tARGUMENTS\tALIASES")
	for i := range p.functions {
		f := &p.functions[i]
		fmt.Fprintf(table, "%s\t%s\t%#x\t+%d\t%s\t%s\t%s\t%s\t%s\n", f.Name, filepath.Base(f.Probe.Path), f.addr, f.Site.Offset,
			f.Site.Insn, f.Site.Cost, f.probes(), f.places(p.Target.Machine), strings.Join(f.Aliases, " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := p.writeOperators(w); err != nil {
		return err
	}
	if err := p.writeGrowths(w); err != nil {
		return err
	}
	p.writeFunctions(w)
	for _, probe := range p.Debugger {
		fmt.Fprintf(w, "\nmappings: %s of %s\n", probe.Function, probe.Path)
	}
	for _, probe := range p.internal {
		fmt.Fprintf(w, "left out: the allocator's own call of free at file offset %#x\n", probe.Offset)
	}
	for i := range p.functions {
		p.functions[i].warn(w)
	}
	return nil
}

// writeAllocators prints the allocators: the traced ones, then those that are left out.
func (p *Plan) writeAllocators(w io.Writer) {
	for _, traced := range []bool{true, false} {
		what := "allocator"
		if !traced {
			what = "left out: allocator"
		}
		for i := range p.allocators {
			if a := &p.allocators[i]; a.Traced == traced {
				fmt.Fprintf(w, "%s %s: %s: %s\n", what, a.Path, a.Name(), a.Why)
			}
		}
	}
}

// writeOperators prints the C++ operators that give their names to the calls that they make.
func (p *Plan) writeOperators(w io.Writer) error {
	if len(p.operators) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATOR THAT GIVES ITS NAME\tADDRESS\tSITE\tINSTRUCTION\tCOST\tFILE\tALIASES")
	for i := range p.operators {
		f := &p.operators[i]
		fmt.Fprintf(table, "%s\t%#x\t+%d\t%s\t%s\t%s\t%s\n", f.Name, f.addr, f.Site.Offset,
			f.Site.Insn, f.Site.Cost, f.Probe.Path, strings.Join(f.Aliases, "; "))
	}
	return table.Flush()
}

// writeGrowths prints the allocator's calls for memory: the address of the call, which the
// kernel always emulates, and the site after it.
func (p *Plan) writeGrowths(w io.Writer) error {
	if len(p.growths) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "HEAP GROWTH\tCALLED AT\tSITE AFTER\tINSTRUCTION\tCOST\tRESULT\tCOUNTS")
	for i := range p.growths {
		g := &p.growths[i]
		counts := "always"
		if g.Nested {
			counts = "inside the functions above"
		}
		fmt.Fprintf(table, "%s\t%#x\t+%d\t%s\t%s\t%s\t%s\n", g.Function, g.addr, g.Site.Offset, g.Site.Insn,
			g.Site.Cost, p.Target.Machine.Place(g.Site.Args[0].Reg), counts)
	}
	return table.Flush()
}

func (p *Plan) stateName() string {
	if p.State == StateTask {
		return "task storage"
	}
	return "a hash by thread"
}

func (p *Plan) siteName() string {
	if p.Sites == SitesCookie {
		return "cookie"
	}
	return "address"
}

func (p *Plan) bufferName() string {
	if p.Options.Buffer == BufferPerf {
		return "perf event buffers"
	}
	return "BPF ring buffers"
}

// stackText describes how stacks are found.
func (p *Plan) stackText() string {
	depth := p.Options.Frames()
	if depth == 0 {
		return "none"
	}
	way := map[Unwind]string{
		UnwindAuto: "by unwind tables, and by frame pointers where code has none",
		UnwindEH:   "by unwind tables alone",
		UnwindFP:   "by frame pointers alone", UnwindHelper: "by the kernel's helper",
	}[p.Options.Unwind]
	return fmt.Sprintf("%s, at most %d frames", way, depth)
}

// probes describes the function's probes.
func (f *Function) probes() string {
	switch {
	case f.Returns:
		return "entry+return"
	case f.exits:
		return fmt.Sprintf("entry+%d exits (%s)", len(f.Exits)+len(f.Jumps), f.exitCost)
	}
	return "entry"
}

// places lists the places from which the probe reads the arguments.
func (f *Function) places(m *process.Machine) string {
	var all []string
	for i, arg := range f.arguments() {
		place := f.Site.Args[i]
		what := "block"
		switch arg {
		case f.row.size:
			what = "size"
		case f.row.count:
			what = "count"
		case f.row.alignment - 1:
			what = "alignment"
		}
		if place.Product {
			if arg == f.row.count {
				continue // the register of the size has the product
			}
			what += "*count"
		}
		all = append(all, what+"="+m.Place(place.Reg))
	}
	return strings.Join(all, " ")
}

// warn prints a warning if hits of the site are expensive, or if the function only jumps to
// code that is not probed.
func (f *Function) warn(w io.Writer) {
	if f.Site.Cost == site.SingleStep {
		fmt.Fprintf(w, "warning: %s has no suitable instruction that the kernel emulates: each call costs a single step more\n", f.Name)
	}
	if f.Site.Thunk != nil && len(f.Site.TailCalls) == 0 {
		fmt.Fprintf(w, "warning: %s only jumps to another function\n", f.Name)
	}
}
